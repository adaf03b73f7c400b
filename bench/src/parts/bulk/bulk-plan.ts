/** What is scored by both sides, and how: a model, a file, the rival's shapes, and how answers are compared. */
import type { BulkJobCreateInput } from '@remuda/schemas';
import type { BulkLoopJob } from '../../bulk/loop/loop-job.js';
import type { LoopShape } from '../../raw/raw-job.js';
import type { BenchModels } from '../../rig/bench-models.js';

export interface BulkPlan {
  name: string;
  model: string;
  models: BenchModels;
  /** Instances of the model in the worker's runner. */
  instances: number;
  rows: number;
  /** Of the file on which the rival's shapes are tried. */
  sweepRows: number;
  shapes: readonly LoopShape[];
  /** Ending of the output. */
  ending: 'jsonl' | 'parquet';
  writeInput(path: string, rows: number): Promise<void>;
  loopJob(shape: LoopShape, input: string, output: string): BulkLoopJob;
  /** Beside model, input and output. */
  wanted: Partial<BulkJobCreateInput>;
  /** @throws Error where they differ, with the first row that does */
  compare(loop: string, own: string): Promise<void>;
}
