/**
 * The rival of a bulk job: a script that one would write by hand for one model and one file, in one process. What it is
 * asked to score, and what it answers.
 */
import type { PixelKwargs } from '@remuda/core/harness/image-input';
import { runTask } from '../../rig/node-process.js';

interface LoopBase {
  modelPath: string;
  input: string;
  output: string;
  batch: number;
  /** intra_op_threads of the session. */
  threads: number;
}

/** Parquet in and out: the feature columns as one tensor, id kept. */
export interface TableLoopJob extends LoopBase {
  kind: 'table';
}

/** A list of image files in, JSON lines out. */
export interface ImageLoopJob extends LoopBase {
  kind: 'images';
  pixels: PixelKwargs;
  width: number;
  /** The model takes any width that is a multiple of this; absent: `width` and no other. */
  widthMultiple?: number;
  answers: ImageAnswers;
}

export type ImageAnswers =
  | { kind: 'labels'; labels: string[] }
  /** CTC; the dictionary has a character a line, space follows, the blank is class 0. */
  | { kind: 'text'; dictionary: string };

export type BulkLoopJob = TableLoopJob | ImageLoopJob;

export interface BulkLoopOutcome {
  rows: number;
  /** From opening the input to the finished output; loading the model and a first run are not in it. */
  seconds: number;
  /** Of these in native runs. */
  modelSeconds: number;
  /** CPU of the whole process in that time. */
  cpuSeconds: number;
  peakRssMb: number;
}

// Of the build, also when a test runs the sources.
const SCRIPT = new URL('../../../dist/bulk/loop/loop-main.js', import.meta.url);

export function runBulkLoop(job: BulkLoopJob): Promise<BulkLoopOutcome> {
  return runTask<BulkLoopOutcome>(SCRIPT, job);
}
