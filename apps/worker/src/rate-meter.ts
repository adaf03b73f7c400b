/** Rows and runs of the last ten seconds, in slots of one second: what a heartbeat says of a worker's speed. */
import type { Clock } from '@remuda/core/lifecycle/clock';

const WINDOW_S = 10;

export class RateMeter {
  readonly #clock: Clock;
  readonly #slots = Array.from({ length: WINDOW_S }, () => ({ second: 0, rows: 0, runs: 0 }));
  readonly #startedAt: number;
  rowsTotal = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  /** One run of so many rows. */
  count(rows: number): void {
    const second = Math.floor(this.#clock.now() / 1_000);
    const slot = this.#slots[second % WINDOW_S] as { second: number; rows: number; runs: number };
    if (slot.second !== second) Object.assign(slot, { second, rows: 0, runs: 0 });
    slot.rows += rows;
    slot.runs++;
    this.rowsTotal += rows;
  }

  rates(): { rowsPerSecond: number; batchMean: number } {
    const now = this.#clock.now();
    const oldest = Math.floor(now / 1_000) - WINDOW_S;
    const recent = this.#slots.filter((slot) => slot.second > oldest);
    const rows = recent.reduce((sum, slot) => sum + slot.rows, 0);
    const runs = recent.reduce((sum, slot) => sum + slot.runs, 0);
    const seconds = Math.min(WINDOW_S, Math.max(1, (now - this.#startedAt) / 1_000));
    return { rowsPerSecond: rows / seconds, batchMean: runs === 0 ? 0 : rows / runs };
  }
}
