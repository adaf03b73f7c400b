/**
 * The batch limit that holds the p95 of a run below a latency objective: additive increase, multiplicative decrease.
 * Pure: it is told of each native run and says what the limit is now.
 *
 * Rule, over the last 20 runs since the limit last changed:
 * - Decrease: two of them took longer than the objective (so the p95 of the 20 is above it, whatever the others do):
 *   the limit becomes 0.7 × the rows of the smaller of the two, but at most 0.7 × the limit, rounded down.
 * - Increase: all 20 are there, their p95 is at most 0.9 × the objective, and at least half of them were full: the
 *   limit grows by 1/16 of max_batch_size, at least 1. Between 0.9 and 1 it stays, so that it does not swing.
 * - Bounds: 1 to max_batch_size. It begins at max_batch_size.
 */
export interface AdaptiveLimitOptions {
  maxBatchSize: number;
  /** p95 of a run, in milliseconds. */
  objectiveMs: number;
}

const WINDOW = 20;
/** More than these above the objective: the p95 (nearest rank) of the window is above it. */
const MOST_OVER = 1;
const DECREASE = 0.7;
const ROOM = 0.9;
const STEPS = 16;

export class AdaptiveLimit {
  readonly #options: AdaptiveLimitOptions;
  readonly #step: number;
  #limit: number;
  #window: { rows: number; ms: number }[] = [];

  constructor(options: AdaptiveLimitOptions, startAt = options.maxBatchSize) {
    this.#options = options;
    this.#step = Math.max(1, Math.floor(options.maxBatchSize / STEPS));
    this.#limit = Math.min(startAt, options.maxBatchSize);
  }

  /** Most rows of a batch now. */
  get limit(): number {
    return this.#limit;
  }

  /** @returns true when the limit has changed */
  observe(rows: number, seconds: number): boolean {
    this.#window.push({ rows, ms: seconds * 1000 });
    if (this.#window.length > WINDOW) this.#window.shift();
    const over = this.#window.filter(({ ms }) => ms > this.#options.objectiveMs);
    if (over.length > MOST_OVER) return this.#change(this.#decreased(over));
    return this.#hasRoom() && this.#change(this.#limit + this.#step);
  }

  #decreased(over: readonly { rows: number }[]): number {
    const rows = Math.min(this.#limit, ...over.map((run) => run.rows));
    return Math.floor(rows * DECREASE);
  }

  #hasRoom(): boolean {
    if (this.#window.length < WINDOW) return false;
    const near = this.#window.filter(({ ms }) => ms > this.#options.objectiveMs * ROOM).length;
    const full = this.#window.filter(({ rows }) => rows >= this.#limit).length;
    return near <= MOST_OVER && full * 2 >= WINDOW;
  }

  #change(to: number): boolean {
    const limit = Math.max(1, Math.min(this.#options.maxBatchSize, to));
    // At a bound the window goes on: it is still the last 20 runs.
    if (limit === this.#limit) return false;
    this.#limit = limit;
    this.#window = [];
    return true;
  }
}
