/** What a raw side is asked to measure, and what it answers: the model and nothing around it, in a process of its own. */
import type { PixelKwargs } from '@remuda/core/harness/image-input';
import { runTask } from '../rig/node-process.js';

/** One way to run the loop. */
export interface LoopShape {
  batch: number;
  /** intra_op_threads of the session. */
  threads: number;
}

export interface LoopRate extends LoopShape {
  rowsPerS: number;
  /** CPU of the whole process for each row, in milliseconds: steadier than rowsPerS where the machine is shared. */
  cpuMsPerRow: number;
}

interface RawBase {
  modelPath: string;
  /** Measured one after the other in one process. */
  shapes: readonly LoopShape[];
  /** Seconds for each shape. */
  seconds: number;
  /** How many loops run side by side, each in a thread with a session of its own. 1: one loop. */
  loops: number;
}

/** The same prepared tensor again and again; the loop waits for each run. */
export interface RawTensorJob extends RawBase {
  kind: 'tensor';
  /** Shape of one row, batch axis first. */
  rowShape: number[];
}

/** Image files, decoded ahead in libuv's threads while the model runs, normalised, run. */
export interface RawImageJob extends RawBase {
  kind: 'images';
  files: string[];
  pixels: PixelKwargs;
  width: number;
  /** The model takes any width that is a multiple of this; absent: `width` and no other. */
  widthMultiple?: number;
}

/** Single rows with a pause before each: the run as a caller at light load would get it. */
export interface RawPacedJob {
  kind: 'paced';
  modelPath: string;
  rowShape: number[];
  runs: number;
  pauseMs: number;
}

export type RawLoopJob = RawTensorJob | RawImageJob;
export type RawJob = RawLoopJob | RawPacedJob;

const SCRIPT = new URL('./raw-main.js', import.meta.url);

export function runRawLoops(job: RawLoopJob): Promise<LoopRate[]> {
  return runTask<LoopRate[]>(SCRIPT, job);
}

/** Milliseconds of each run. */
export function runRawPaced(job: RawPacedJob): Promise<number[]> {
  return runTask<number[]>(SCRIPT, job);
}
