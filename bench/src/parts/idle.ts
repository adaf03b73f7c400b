/**
 * idle: one request at a time with a pause between, over HTTP with Prefer: wait. p50_ms and p99_ms are the whole time
 * from the call to the last byte of the result, the model's run and the 110 KB body included.
 */
import { sendLoad } from '../load/load-job.js';
import { runRawPaced } from '../raw/raw-job.js';
import { modelFile } from '../rig/bench-models.js';
import { Rig } from '../rig/rig.js';
import { percentile, round } from '../rig/statistics.js';
import { CLASSIFIER_ROW } from './classifier.js';
import type { PartContext } from './part.js';

export interface IdleFigures {
  /** Median of the model's run alone. */
  raw_ms: number;
  p50_ms: number;
  p99_ms: number;
  /** p50_ms and p99_ms without raw_ms. */
  added_p50_ms: number;
  added_p99_ms: number;
}

const MODEL = 'text-direction-tensor';
const PAUSE_MS = 15;
const WARMUP_CALLS = 50;

export async function idle(context: PartContext): Promise<IdleFigures> {
  const calls = context.quick ? 150 : 500;
  const rig = await Rig.start({ models: { real: { [MODEL]: {} } }, ...context.rig });
  const raw: number[] = [];
  const own: number[] = [];
  try {
    await rig.startWorker({ models: [MODEL] });
    await callOneByOne(rig, context, WARMUP_CALLS);
    for (let i = 1; i <= context.rounds; i++) {
      raw.push(
        ...(await runRawPaced({
          kind: 'paced',
          modelPath: modelFile(MODEL),
          rowShape: CLASSIFIER_ROW,
          runs: calls,
          pauseMs: PAUSE_MS,
        })),
      );
      const latencies = await callOneByOne(rig, context, calls);
      own.push(...latencies);
      context.log(
        `idle: round ${i}: p50 ${percentile(latencies, 50).toFixed(2)} ms, p99 ${percentile(latencies, 99).toFixed(2)} ms`,
      );
    }
    await context.ledger.countFenced(rig);
  } finally {
    await rig.stop();
  }
  const rawMs = percentile(raw, 50);
  const [p50, p99] = [percentile(own, 50), percentile(own, 99)];
  return {
    raw_ms: round(rawMs),
    p50_ms: round(p50),
    p99_ms: round(p99),
    added_p50_ms: round(p50 - rawMs),
    added_p99_ms: round(p99 - rawMs),
  };
}

async function callOneByOne(rig: Rig, { ledger }: PartContext, count: number): Promise<number[]> {
  const { ids, latencies } = await sendLoad({
    url: rig.apiUrl,
    model: MODEL,
    body: { kind: 'tensor', rowShape: CLASSIFIER_ROW },
    count,
    connections: 1,
    waitS: 30,
    pauseMs: PAUSE_MS,
  });
  await ledger.check(rig, ids);
  return latencies;
}
