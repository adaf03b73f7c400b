/**
 * How fast requests leave a queue, or end for a tenant: from two readings of what has ended, whoever ended it. That is
 * not what the workers can do: while little is let in, little leaves. A limit that took it for that would shut itself.
 */
import type { Usage } from '../store/usage.js';

/** Shortest time over which a rate is worth something. */
const WINDOW_MS = 1_000;
/** Two readings that lie further apart than this say little about now. */
const GAP_MS = 10_000;
/** Of a new window against those before. */
const WEIGHT = 0.5;

export interface Rate {
  requestsPerS: number;
  rowsPerS: number;
}

export class DrainRate {
  #from: { at: number; usage: Usage } | undefined;
  #rate: (Rate & { at: number }) | undefined;

  /** @param at Unix milliseconds of the reading */
  note(usage: Usage, at: number): void {
    const from = this.#from;
    if (!from || usage.ended < from.usage.ended || at - from.at >= GAP_MS) {
      this.#begin(usage, at);
      return;
    }
    // Runs may be longer than the window: it stays open until something has ended.
    if (at - from.at < WINDOW_MS || usage.ended === from.usage.ended) return;
    const seconds = (at - from.at) / 1_000;
    const requestsPerS = (usage.ended - from.usage.ended) / seconds;
    const rowsPerS = (usage.rowsEnded - from.usage.rowsEnded) / seconds;
    const before = this.#rate;
    const weight = before && at - before.at < GAP_MS ? WEIGHT : 1;
    this.#rate = {
      at,
      requestsPerS: mixed(before?.requestsPerS ?? 0, requestsPerS, weight),
      rowsPerS: mixed(before?.rowsPerS ?? 0, rowsPerS, weight),
    };
    this.#begin(usage, at);
  }

  /** undefined: not measured lately. */
  rate(now: number): Rate | undefined {
    return this.#rate && now - this.#rate.at < GAP_MS ? this.#rate : undefined;
  }

  #begin(usage: Usage, at: number): void {
    this.#from = { at, usage };
  }
}

function mixed(before: number, now: number, weight: number): number {
  return before + weight * (now - before);
}
