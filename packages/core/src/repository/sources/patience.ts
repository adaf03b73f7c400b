/**
 * How long a source is waited for, and how often it is asked again. Only source_unavailable is worth another try; a
 * transfer that gets further with each break may break as often as it likes.
 */
import { RemudaError } from '../../errors.js';
import { type Clock, systemClock } from '../../lifecycle/clock.js';
import { unavailable } from './source-files.js';

export interface PatienceOptions {
  /** Default: the system's. */
  clock?: Clock;
  /** Longest time without a byte, in ms; default 30 000. Raise it for a source that is slow to begin. */
  stallMs?: number;
  /** Tries without progress before giving up; default 5. */
  attempts?: number;
  /** Pause after the first failed try, in ms; doubled each time, 15 s at most; default 500. */
  pauseMs?: number;
}

const LONGEST_PAUSE_MS = 15_000;

export class Patience {
  readonly #clock: Clock;
  readonly #stallMs: number;
  readonly #attempts: number;
  readonly #pauseMs: number;

  constructor({ clock = systemClock, stallMs = 30_000, attempts = 5, pauseMs = 500 }: PatienceOptions = {}) {
    this.#clock = clock;
    this.#stallMs = stallMs;
    this.#attempts = attempts;
    this.#pauseMs = pauseMs;
  }

  /** The promise's value, unless it takes longer than a stall may: then `end` is called. @throws source_unavailable */
  within<T>(address: string, promise: Promise<T>, end: () => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const cancel = this.#clock.after(this.#stallMs, () => {
        reject(unavailable(`${address}: nothing came for ${this.#stallMs} ms`));
        end();
      });
      promise.then(resolve, reject).finally(cancel);
    });
  }

  /**
   * Does the work again after source_unavailable, with growing pauses.
   * @param progress grows while the tries get further; then they are counted from the start
   */
  async retried<T>(work: () => Promise<T>, signal: AbortSignal, progress = (): number => 0): Promise<T> {
    let best = progress();
    for (let failed = 1; ; failed += 1) {
      signal.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof RemudaError) || error.code !== 'source_unavailable') throw error;
        const reached = progress();
        if (reached > best) failed = 1;
        best = Math.max(best, reached);
        if (failed >= this.#attempts) throw tiredOf(error, failed);
        await this.pause(Math.min(this.#pauseMs * 2 ** (failed - 1), LONGEST_PAUSE_MS), signal);
      }
    }
  }

  /** @throws the signal's reason */
  pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        cancel();
        reject(signal.reason);
      };
      const cancel = this.#clock.after(ms, () => {
        signal.removeEventListener('abort', stop);
        resolve();
      });
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    });
  }
}

function tiredOf(error: RemudaError, attempts: number): RemudaError {
  const tries = attempts === 1 ? '1 try' : `${attempts} tries`;
  return unavailable(
    `${error.message} (${tries}); what has come is kept, and the next sync goes on there`,
    error,
  );
}
