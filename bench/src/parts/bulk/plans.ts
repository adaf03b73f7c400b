/** The three files: 2 × images in a list, and a table. */
import { join } from 'node:path';
import { writeImageList } from '../../bulk/data/image-list.js';
import { writeTable } from '../../bulk/data/table-file.js';
import type { LoopShape } from '../../raw/raw-job.js';
import { modelFile, type TabularModel } from '../../rig/bench-models.js';
import { PIXELS, sampleImages } from '../classifier.js';
import type { PartContext } from '../part.js';
import type { BulkPlan } from './bulk-plan.js';
import { sameLines, sameTables } from './same-answers.js';

/** Rows of each form of the bench: --quick, the one in between, --full. */
const ROWS = {
  classifier: { quick: 600, usual: 8_000, full: 200_000 },
  recogniser: { quick: 60, usual: 800, full: 5_000 },
  tabular: { quick: 100_000, usual: 1_000_000, full: 5_000_000 },
} as const;

/** How far a score may lie from the other side's: rows of another batch add up in another order. */
const CLASSIFIER_TOLERANCE = 1e-4;
/** A batch of lines is padded to its widest, which moves scores a little, and the text of no sample. */
const RECOGNISER_TOLERANCE = 0.2;

export function rowsOf(name: keyof typeof ROWS, { quick, full }: PartContext): number {
  return ROWS[name][full ? 'full' : quick ? 'quick' : 'usual'];
}

export function classifierPlan(context: PartContext): BulkPlan {
  const model = 'text-direction';
  return {
    name: 'classifier',
    model,
    models: { real: { [model]: {} } },
    instances: 2,
    rows: rowsOf('classifier', context),
    sweepRows: context.quick ? 100 : 600,
    shapes: shapesOf([1, 4, 8, 16], [1, 2]),
    ending: 'jsonl',
    writeInput: (path, rows) => writeImageList(path, sampleImages(), rows),
    loopJob: (shape, input, output) => ({
      ...{ kind: 'images', ...shape, input, output, modelPath: modelFile(model), pixels: PIXELS, width: 192 },
      answers: { kind: 'labels', labels: ['0', '180'] },
    }),
    wanted: {},
    compare: (loop, own) => sameLines(loop, own, { exact: ['label'], near: ['score'] }, CLASSIFIER_TOLERANCE),
  };
}

export function recogniserPlan(context: PartContext): BulkPlan {
  const model = 'text-recognition';
  return {
    name: 'recogniser',
    model,
    models: { real: { [model]: {} } },
    instances: 2,
    rows: rowsOf('recogniser', context),
    sweepRows: context.quick ? 30 : 120,
    shapes: shapesOf([1, 4], [1, 2]),
    ending: 'jsonl',
    writeInput: (path, rows) => writeImageList(path, sampleImages(), rows),
    loopJob: (shape, input, output) => ({
      ...{ kind: 'images', ...shape, input, output, modelPath: modelFile(model), pixels: PIXELS },
      ...{ width: 1280, widthMultiple: 32 },
      answers: { kind: 'text', dictionary: join(modelFile(model), '../keys.txt') },
    }),
    wanted: {},
    compare: (loop, own) => sameLines(loop, own, { exact: ['text'], near: ['score'] }, RECOGNISER_TOLERANCE),
  };
}

/** @param modelPath of the ONNX file that the repository has too */
export function tabularPlan(context: PartContext, tabular: TabularModel, modelPath: string): BulkPlan {
  return {
    name: 'tabular',
    model: 'tabular',
    models: { tabular },
    instances: tabular.instances,
    rows: rowsOf('tabular', context),
    sweepRows: context.quick ? 50_000 : 300_000,
    shapes: shapesOf([1024, 4096, 16_384], [1, 2]),
    ending: 'parquet',
    writeInput: writeTable,
    loopJob: (shape, input, output) => ({ kind: 'table', ...shape, input, output, modelPath }),
    wanted: { map: { x: '[f0..f29]' } },
    compare: sameTables,
  };
}

function shapesOf(batches: readonly number[], threads: readonly number[]): LoopShape[] {
  return threads.flatMap((count) => batches.map((batch) => ({ batch, threads: count })));
}
