/** Heartbeats out of turn: one at once when something has changed, and at most one each 100 ms however much does. */
import type { Clock } from '@remuda/core/lifecycle/clock';

const AT_MOST_EACH_MS = 100;

export class Announcements {
  readonly #clock: Clock;
  readonly #beat: () => Promise<void>;
  #next: Promise<void> | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;

  /** @param beat writes a heartbeat of the present state; does not reject */
  constructor(clock: Clock, beat: () => Promise<void>) {
    this.#clock = clock;
    this.#beat = beat;
  }

  /** Resolves when a heartbeat that was begun after this call has been written. */
  make(): Promise<void> {
    this.#next ??= this.#write();
    return this.#next;
  }

  async #write(): Promise<void> {
    const pause = Math.max(0, this.#lastAt + AT_MOST_EACH_MS - this.#clock.now());
    await new Promise<void>((resolve) => {
      this.#clock.after(pause, resolve);
    });
    this.#next = undefined;
    this.#lastAt = this.#clock.now();
    await this.#beat();
  }
}
