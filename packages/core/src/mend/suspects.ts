/**
 * What looked wrong, and since when. A job without a record may be one whose record is on its way, so nothing is
 * touched at the first sight of it. Only time that has passed here is measured: clocks of other hosts say nothing.
 */
import type { Clock } from '../lifecycle/clock.js';

export interface SuspectsOptions {
  clock: Clock;
  /** How long something must have looked wrong. */
  afterMs: number;
  /** Most that are remembered; the others are found again. */
  most: number;
}

export class Suspects<T extends { key: string }> {
  readonly #options: SuspectsOptions;
  readonly #seen = new Map<string, { subject: T; since: number }>();

  constructor(options: SuspectsOptions) {
    this.#options = options;
  }

  add(subjects: Iterable<T>): void {
    const { clock, most } = this.#options;
    for (const subject of subjects) {
      if (this.#seen.size >= most) return;
      if (!this.#seen.has(subject.key)) this.#seen.set(subject.key, { subject, since: clock.now() });
    }
  }

  /** Up to `count` that were first seen long enough ago, oldest first. They are forgotten. */
  takeRipe(count: number): T[] {
    const before = this.#options.clock.now() - this.#options.afterMs;
    const ripe: T[] = [];
    for (const [key, { subject, since }] of this.#seen) {
      if (since > before || ripe.length >= count) break;
      this.#seen.delete(key);
      ripe.push(subject);
    }
    return ripe;
  }
}
