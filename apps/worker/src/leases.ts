/** Who uses a loaded version: jobs hold a lease while they run in it, so that it is not taken from under them. */
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { ServedModel } from './served-model.js';

export interface Lease {
  served: ServedModel;
  release(): void;
}

export class Leases {
  readonly #clock: Clock;
  #held = 0;
  #whenFree: () => void = () => {};
  /** Unix milliseconds; 0: never. */
  lastUsedAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get inUse(): boolean {
    return this.#held > 0;
  }

  /** 0 while a job is in it. */
  get unusedMs(): number {
    return this.inUse ? 0 : this.#clock.now() - this.lastUsedAt;
  }

  /** It counts as used from now. */
  touch(): void {
    this.lastUsedAt = this.#clock.now();
  }

  take(served: ServedModel): Lease {
    this.#held++;
    this.touch();
    const release = (): void => {
      this.#held--;
      this.touch();
      if (this.#held === 0) this.#whenFree();
    };
    return { served, release };
  }

  /** Resolves when no job is in it, or after `ms`. */
  free(ms: number): Promise<void> {
    if (!this.inUse) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#whenFree = () => {
        cancel();
        resolve();
      };
    });
  }
}
