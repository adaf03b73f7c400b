/**
 * recogniser and scale: the heavy model, rows of width 320. Each row's answer is 1 MB of class scores, and all of it
 * goes through Redis; the raw loop throws it away.
 */
import { modelFile } from '../rig/bench-models.js';
import { Rig } from '../rig/rig.js';
import { median, round } from '../rig/statistics.js';
import { measureBacklog, type PartContext, type Workload } from './part.js';
import { compareThroughput, type ThroughputFigures } from './throughput.js';

const MODEL = 'text-recognition-tensor';
/** 184,320 bytes in, 40 × 6,625 scores out. */
const ROW = [1, 3, 48, 320];
/** On a CPU rows alone are faster than rows in a batch, on both sides. */
const MODELS = { real: { [MODEL]: { max_batch_size: '1', warmup: '[{ rows: 1, dims: { } }]' } } };

export function recogniser(context: PartContext): Promise<ThroughputFigures> {
  const workload = workloadOf(context.quick ? 100 : 500);
  return compareThroughput(
    {
      name: 'recogniser',
      models: MODELS,
      raw: {
        model: { kind: 'tensor', modelPath: modelFile(MODEL), rowShape: ROW },
        batches: [1, 4, 8],
        threads: [1, 2],
        sweepSeconds: context.quick ? 0.5 : 2,
        roundSeconds: context.quick ? 1 : 5,
        parallelBatches: [1],
      },
      remuda: (rig) => measureBacklog(rig, context.ledger, workload),
    },
    context,
  );
}

export interface ScaleFigures {
  /** Rows a second of one worker, and of two. */
  one: number;
  two: number;
  ratio: number;
}

/** One worker against two, one instance with one thread each. */
export async function scale(context: PartContext): Promise<ScaleFigures> {
  const worker = { instances: 1 };
  const rig = await Rig.start({ models: MODELS, ...context.rig });
  const one: number[] = [];
  const two: number[] = [];
  try {
    for (let i = 1; i <= context.rounds; i++) {
      const alone = await measureBacklog(rig, context.ledger, workloadOf(context.quick ? 60 : 200), [worker]);
      await rig.stopWorkers();
      const both = await measureBacklog(rig, context.ledger, workloadOf(context.quick ? 120 : 400), [
        worker,
        worker,
      ]);
      await rig.stopWorkers();
      one.push(alone.rowsPerS);
      two.push(both.rowsPerS);
      context.log(
        `scale: round ${i}: one worker ${alone.rowsPerS.toFixed(1)}, two ${both.rowsPerS.toFixed(1)} rows/s`,
      );
    }
  } finally {
    await rig.stop();
  }
  return {
    one: round(median(one), 1),
    two: round(median(two), 1),
    ratio: round(median(two) / median(one), 3),
  };
}

function workloadOf(count: number): Workload {
  return { model: MODEL, body: { kind: 'tensor', rowShape: ROW }, count };
}
