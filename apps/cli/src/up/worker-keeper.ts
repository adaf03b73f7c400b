/**
 * Keeps one worker running: a worker that ends unasked is started again, later each time it fails early. Its group is
 * killed first, so a runner of the dead one does not hold memory beside that of the new one.
 */
import { type Clock, systemClock } from '@remuda/core/lifecycle/clock';
import type { ChildApp } from './child-app.js';

export interface WorkerKeeperOptions {
  /** Starts the process; called again after each unexpected end. */
  start(): ChildApp;
  /** A line for the person at the terminal. */
  say(line: string): void;
  clock?: Clock;
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** A worker that lived this long is taken to be well: the delay begins anew. */
const SETTLED_MS = 60_000;

export class WorkerKeeper {
  readonly #options: WorkerKeeperOptions;
  readonly #clock: Clock;
  #current: ChildApp;
  #startedAt: number;
  #delayMs = FIRST_DELAY_MS;
  #keeping = false;
  #cancelRestart = (): void => {};

  constructor(options: WorkerKeeperOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#current = options.start();
    this.#startedAt = this.#clock.now();
  }

  get current(): ChildApp {
    return this.#current;
  }

  /** From now on it is started again when it ends; before, an end is for whoever waits for `ready` to judge. */
  keep(): void {
    this.#keeping = true;
    this.#watch();
  }

  /** From now on its end is no surprise. */
  release(): void {
    this.#keeping = false;
    this.#cancelRestart();
  }

  /** Orderly; resolves when the worker is gone. */
  async stop(): Promise<void> {
    this.release();
    this.#current.terminate();
    await this.#current.ended;
  }

  #watch(): void {
    const watched = this.#current;
    void watched.ended.then((end) => {
      watched.killGroup();
      if (!this.#keeping) return;
      const lived = this.#clock.now() - this.#startedAt;
      this.#delayMs = lived >= SETTLED_MS ? FIRST_DELAY_MS : this.#delayMs;
      this.#options.say(`${watched.describeEnd(end)}\n  starting it again in ${this.#delayMs / 1_000} s`);
      this.#cancelRestart = this.#clock.after(this.#delayMs, () => this.#restart());
      this.#delayMs = Math.min(LONGEST_DELAY_MS, this.#delayMs * 2);
    });
  }

  #restart(): void {
    const restarted = this.#options.start();
    this.#current = restarted;
    this.#startedAt = this.#clock.now();
    this.#watch();
    restarted.ready.then(
      () => this.#options.say(`${restarted.name} is ready again`),
      // Its end is told by #watch.
      () => {},
    );
  }
}
