/**
 * The raw side of a comparison over several rounds. A first sweep tries every shape; the fastest few run again in each
 * round, and the best of them is that round's rate. Two loops side by side are measured beside it, as a stricter
 * figure that stands in no ratio.
 */
import { type LoopRate, type LoopShape, type RawLoopJob, runRawLoops } from './raw-job.js';

/** Shapes this close to the best of the sweep stay in the race. */
const CLOSE = 0.94;
const MOST_SHAPES = 3;

export type RawModel = RawLoopJob extends infer Job
  ? Job extends RawLoopJob
    ? Omit<Job, 'shapes' | 'seconds' | 'loops'>
    : never
  : never;

export interface RawSideOptions {
  model: RawModel;
  batches: readonly number[];
  threads: readonly number[];
  /** Of each shape in the sweep. */
  sweepSeconds: number;
  /** Of each shape in a round. */
  roundSeconds: number;
  /** Batch sizes of two loops side by side. */
  parallelBatches: readonly number[];
}

export interface RawRound {
  rowsPerS: number;
  best: LoopRate;
  parallelRowsPerS: number;
}

export class RawSide {
  readonly #options: RawSideOptions;
  #single: readonly LoopShape[] = [];
  #parallel: readonly LoopShape[] = [];

  constructor(options: RawSideOptions) {
    this.#options = options;
  }

  /** Finds the shapes worth measuring. */
  async sweep(): Promise<LoopRate[]> {
    const { batches, threads, sweepSeconds, parallelBatches } = this.#options;
    const shapes = threads.flatMap((count) => batches.map((batch) => ({ batch, threads: count })));
    const rates = await this.#run(shapes, sweepSeconds, 1);
    this.#single = fastest(rates, MOST_SHAPES);
    const parallelShapes = parallelBatches.map((batch) => ({ batch, threads: 1 }));
    this.#parallel = fastest(await this.#run(parallelShapes, sweepSeconds, 2), 1);
    return rates;
  }

  async round(): Promise<RawRound> {
    const { roundSeconds } = this.#options;
    const best = bestOf(await this.#run(this.#single, roundSeconds, 1));
    const parallel = bestOf(await this.#run(this.#parallel, roundSeconds, 2));
    return { rowsPerS: best.rowsPerS, best, parallelRowsPerS: parallel.rowsPerS };
  }

  #run(shapes: readonly LoopShape[], seconds: number, loops: number): Promise<LoopRate[]> {
    return runRawLoops({ ...this.#options.model, shapes, seconds, loops });
  }
}

function fastest(rates: readonly LoopRate[], most: number): LoopShape[] {
  const sorted = [...rates].sort((a, b) => b.rowsPerS - a.rowsPerS);
  const limit = (sorted[0]?.rowsPerS ?? 0) * CLOSE;
  return sorted
    .filter((rate) => rate.rowsPerS >= limit)
    .slice(0, most)
    .map(({ batch, threads }) => ({ batch, threads }));
}

function bestOf(rates: readonly LoopRate[]): LoopRate {
  return rates.reduce((best, rate) => (rate.rowsPerS > best.rowsPerS ? rate : best));
}
