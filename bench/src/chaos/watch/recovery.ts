/**
 * How long the fleet takes to get over a fault. Where a worker or its runners are struck: from the blow until every
 * request that the worker held has ended. Where Redis, an API or a connection is struck: from the end of the disturbance
 * until the first of the requests that had been waiting has ended.
 */
import type { Witness } from './witness.js';

interface Recovery {
  kind: string;
  since: number;
  /** Those that have to end still; in `first` any of them is enough. */
  waiting: Set<string>;
  first: boolean;
}

export interface RecoveryFinding {
  kind: string;
  seconds: number;
}

export class Recoveries {
  readonly #witness: Witness;
  readonly #now: () => number;
  readonly #open = new Set<Recovery>();
  longest: RecoveryFinding = { kind: '', seconds: 0 };
  /** The longest of each kind of fault, in seconds. */
  readonly byKind = new Map<string, number>();

  constructor(witness: Witness, now: () => number) {
    this.#witness = witness;
    this.#now = now;
  }

  untilAll(kind: string, ids: readonly string[], since: number): void {
    this.#begin({
      kind,
      since,
      waiting: new Set(ids.filter((id) => this.#witness.open.has(id))),
      first: false,
    });
  }

  untilFirst(kind: string, since: number): void {
    this.#begin({ kind, since, waiting: new Set(this.#witness.open), first: true });
  }

  ended(id: string): void {
    for (const recovery of this.#open) {
      if (!recovery.waiting.delete(id)) continue;
      if (recovery.first || recovery.waiting.size === 0) this.#finish(recovery);
    }
  }

  #begin(recovery: Recovery): void {
    if (recovery.waiting.size > 0) this.#open.add(recovery);
  }

  #finish(recovery: Recovery): void {
    const { kind, since } = recovery;
    this.#open.delete(recovery);
    const seconds = (this.#now() - since) / 1_000;
    if (seconds > (this.byKind.get(kind) ?? 0)) this.byKind.set(kind, seconds);
    if (seconds > this.longest.seconds) this.longest = { kind, seconds };
  }
}
