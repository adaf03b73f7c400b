/**
 * eta: how far the expected end that GET /v1/requests/{id} gives is from the end that came, asked of requests at random
 * while a backlog of the classifier drains. The error is relative to the time that was really left; requests with less
 * left than a quarter of a second are not counted.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestRecord } from '@remuda/schemas';
import { sendLoad } from '../load/load-job.js';
import { Rig } from '../rig/rig.js';
import { percentile, round } from '../rig/statistics.js';
import { CLASSIFIER_ROW } from './classifier.js';
import { measureBacklog, type PartContext, untilNoneOpen, type Workload } from './part.js';

export interface EtaFigures {
  asked: number;
  /** Of the time that was left. */
  p50_error: number;
  p90_error: number;
  /** Above 0: it took longer than was said. */
  median_bias: number;
}

const MODEL = 'text-direction-tensor';
const ASK_EVERY_MS = 40;
const LEAST_LEFT_MS = 250;

interface Asked {
  id: string;
  at: number;
  etaMs: number;
}

export async function eta(context: PartContext): Promise<EtaFigures> {
  const count = context.quick ? 3_000 : 12_000;
  const workload: Workload = { model: MODEL, body: { kind: 'tensor', rowShape: CLASSIFIER_ROW }, count };
  const rig = await Rig.start({ models: { real: { [MODEL]: {} } }, ...context.rig });
  const errors: number[] = [];
  try {
    // Warm, and measured: the profile comes from runs under load.
    await measureBacklog(rig, context.ledger, { ...workload, count: Math.ceil(count / 3) });
    for (let i = 0; i < context.rounds; i++) errors.push(...(await drainOnce(rig, context, workload)));
  } finally {
    await rig.stop();
  }
  const sizes = errors.map(Math.abs);
  const figures = {
    asked: errors.length,
    p50_error: round(percentile(sizes, 50), 3),
    p90_error: round(percentile(sizes, 90), 3),
    median_bias: round(percentile(errors, 50), 3),
  };
  context.log(`eta: ${figures.asked} asked, error p50 ${figures.p50_error}, p90 ${figures.p90_error}`);
  return figures;
}

/** Relative errors of one drained backlog, with their sign. */
async function drainOnce(rig: Rig, { ledger }: PartContext, workload: Workload): Promise<number[]> {
  await rig.hold(MODEL, true);
  const { ids } = await sendLoad({ ...workload, url: rig.apiUrl, connections: 24, waitS: 0, pauseMs: 0 });
  await rig.untilRedisRests();
  await rig.hold(MODEL, false);
  const asked = await askWhileDraining(rig, ids);
  await untilNoneOpen(rig);
  const records = await ledger.check(rig, ids);
  const ended = new Map(records.map((record) => [record.requestId, record.finishedAt ?? 0]));
  await rig.forgetRequests();
  return asked.flatMap(({ id, at, etaMs }) => {
    const left = (ended.get(id) as number) - at;
    return left < LEAST_LEFT_MS ? [] : [(left - etaMs) / left];
  });
}

async function askWhileDraining(rig: Rig, ids: readonly string[]): Promise<Asked[]> {
  const asked: Asked[] = [];
  while ((await rig.store.countOpen()) > 0) {
    const id = ids[Math.floor(Math.random() * ids.length)] as string;
    const at = Date.now();
    const response = await fetch(`${rig.apiUrl}/v1/requests/${id}`);
    const { queue } = (await response.json()) as RequestRecord;
    if (typeof queue?.eta_ms === 'number') asked.push({ id, at, etaMs: queue.eta_ms });
    await sleep(ASK_EVERY_MS);
  }
  return asked;
}
