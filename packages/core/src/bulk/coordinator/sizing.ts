/** How many rows the next chunk has: what takes a device about a second, in whole batches. */
import type { ModelPace } from '../chunk-door.js';

export interface SizingLimits {
  /** Most rows of a chunk, as the job says; null: no limit but ours. */
  mostRows: number | null;
  /** A chunk takes about this long on a device. */
  seconds: number;
  /** Most bytes of answers of a chunk, which wait in Redis until they are fetched. */
  resultBytes: number;
}

export const SIZING: SizingLimits = { mostRows: null, seconds: 1, resultBytes: 16 * 1024 * 1024 };

/** Batches of a chunk while nobody knows how long they take. */
const FIRST_BATCHES = 4;
/** A pace that was measured wrong does no great harm. */
const MOST_GROWTH = 4;
/** Of models so fast that reading and writing take longer than they do: those go on beside the next chunk. */
const MOST_ROWS = 131_072;

export class ChunkSizes {
  readonly #limits: SizingLimits;
  readonly #batchRows: number;
  #largest = 0;
  #seconds = 0;
  #rows = 0;
  #bytesPerRow = 0;

  constructor(batchRows: number, limits: SizingLimits = SIZING) {
    this.#batchRows = batchRows;
    this.#limits = limits;
  }

  /** A chunk has ended: what it has cost. @param seconds native @param bytes of its answers */
  ended({ rows, seconds, bytes }: { rows: number; seconds: number; bytes: number }): void {
    // Older chunks count less and less: the pace of now is what matters.
    this.#seconds = this.#seconds / 2 + seconds;
    this.#rows = this.#rows / 2 + rows;
    this.#bytesPerRow = Math.max(this.#bytesPerRow * 0.9, bytes / rows);
    this.#largest = Math.max(this.#largest, rows);
  }

  /** Rows of the next chunk: a multiple of the rows of a batch. */
  next(pace: ModelPace): number {
    const { mostRows, resultBytes } = this.#limits;
    const wished = Math.min(
      this.#bySpeed(pace),
      this.#bytesPerRow > 0 ? resultBytes / this.#bytesPerRow : Number.POSITIVE_INFINITY,
      mostRows ?? MOST_ROWS,
    );
    return Math.max(1, Math.floor(wished / this.#batchRows)) * this.#batchRows;
  }

  #bySpeed({ secondsPerRow, instances, devices }: ModelPace): number {
    const first = FIRST_BATCHES * this.#batchRows;
    const own = this.#rows > 0 ? this.#seconds / this.#rows : null;
    const perRow = own ?? secondsPerRow;
    if (!perRow) return first;
    const side = Math.max(1, instances / Math.max(1, devices));
    const rows = (this.#limits.seconds * side) / perRow;
    return Math.min(rows, Math.max(first, this.#largest) * MOST_GROWTH);
  }
}
