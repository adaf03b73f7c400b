/**
 * recogniser and scale: the heavy model as people use it, images of text lines in and their text out. The raw loop
 * decodes and runs the same images and throws the scores away; Remuda reads the text out of them, too.
 */
import { modelFile } from '../rig/bench-models.js';
import { Rig } from '../rig/rig.js';
import { median, round } from '../rig/statistics.js';
import { PIXELS, sampleImages } from './classifier.js';
import { measureBacklog, type PartContext, type Workload } from './part.js';
import { compareThroughput, type ThroughputFigures } from './throughput.js';

const MODEL = 'text-recognition';
const MODELS = { real: { [MODEL]: {} } };
/** As models/text-recognition/model.yaml has them: widths are padded to a multiple. */
const WIDTH = { width: 1280, widthMultiple: 32 };

export function recogniser(context: PartContext): Promise<ThroughputFigures> {
  const workload = workloadOf(context.quick ? 100 : 800);
  return compareThroughput(
    {
      name: 'recogniser',
      models: MODELS,
      raw: {
        model: {
          kind: 'images',
          modelPath: modelFile(MODEL),
          files: sampleImages(),
          pixels: PIXELS,
          ...WIDTH,
        },
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
      const alone = await measureBacklog(rig, context.ledger, workloadOf(context.quick ? 60 : 400), [worker]);
      await rig.stopWorkers();
      const both = await measureBacklog(rig, context.ledger, workloadOf(context.quick ? 120 : 800), [
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
  return { model: MODEL, body: { kind: 'images', files: sampleImages() }, count };
}
