/**
 * What asks `remuda up` to stop: SIGINT, SIGTERM, SIGHUP, and the end of the process that started it where there is a
 * channel to it (npm start). The first asks for an orderly stop, a second one for a stop at once.
 */
import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type Signal = (typeof SIGNALS)[number];

/** What is needed of `process`. */
export interface SignalHost {
  on(event: Signal | 'disconnect', listener: () => void): unknown;
  off(event: Signal | 'disconnect', listener: () => void): unknown;
}

export interface StopReason {
  name: Signal | 'parent gone';
  /** Of a run that was cut off by it. */
  exitCode: number;
}

export class StopSignals {
  readonly first: Promise<StopReason>;
  readonly second: Promise<StopReason>;
  readonly #host: SignalHost;
  readonly #listeners: [Signal | 'disconnect', () => void][] = [];
  readonly #resolvers: ((reason: StopReason) => void)[] = [];

  constructor(host: SignalHost) {
    this.#host = host;
    this.first = new Promise((resolve) => this.#resolvers.push(resolve));
    this.second = new Promise((resolve) => this.#resolvers.push(resolve));
    for (const signal of SIGNALS) {
      this.#listen(signal, { name: signal, exitCode: 128 + constants.signals[signal] });
    }
    this.#listen('disconnect', { name: 'parent gone', exitCode: 128 + constants.signals.SIGHUP });
  }

  close(): void {
    for (const [event, listener] of this.#listeners) this.#host.off(event, listener);
  }

  #listen(event: Signal | 'disconnect', reason: StopReason): void {
    const listener = (): void => this.#resolvers.shift()?.(reason);
    this.#listeners.push([event, listener]);
    this.#host.on(event, listener);
  }
}
