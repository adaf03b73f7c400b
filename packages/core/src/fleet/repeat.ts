/**
 * Something done again and again: never twice at once, a failure told and outlived, a stop that waits for the turn
 * under way. Heartbeats, views of the fleet and the sweeper (requests/sweep-requests.ts) run on it.
 */
import type { Clock } from '../lifecycle/clock.js';

export interface RepeatOptions {
  /** Pause between the end of one turn and the start of the next. */
  everyMs: number;
  clock: Clock;
  turn(): Promise<void>;
  onError(error: Error): void;
}

export class Repeat {
  readonly #options: RepeatOptions;
  #cancel: (() => void) | undefined;
  #underWay: Promise<void> | undefined;
  #stopped = true;

  constructor(options: RepeatOptions) {
    this.#options = options;
  }

  /** The first turn comes at once; resolves when it has ended, well or not. */
  async start(): Promise<void> {
    if (!this.#stopped) return;
    this.#stopped = false;
    await this.#take();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#underWay;
  }

  async #take(): Promise<void> {
    const { turn, onError, clock, everyMs } = this.#options;
    this.#underWay = turn().catch((error: unknown) => {
      onError(error instanceof Error ? error : new Error(String(error)));
    });
    await this.#underWay;
    if (!this.#stopped) this.#cancel = clock.after(everyMs, () => void this.#take());
  }
}
