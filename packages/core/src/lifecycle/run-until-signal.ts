/**
 * The life of a process around its one Service: start, wait for a reason to stop, stop, exit. The exit is passed in:
 * core ends no process by itself.
 *
 *   0    stopped as asked
 *   1    did not start, did not stop in time, or the stop failed
 *   130  second SIGINT (143: second SIGTERM): the impatient way out
 */
import type { Logger } from '../observability/logger.js';
import { type Clock, systemClock } from './clock.js';
import type { Service } from './service.js';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
type Signal = (typeof SIGNALS)[number];
const EXIT_CODES: Readonly<Record<Signal, number>> = { SIGTERM: 143, SIGINT: 130 };

/** What is needed of `process`. */
export interface HostProcess {
  on(event: Signal | 'disconnect', listener: () => void): unknown;
  off(event: Signal | 'disconnect', listener: () => void): unknown;
  /** Id of the parent: changes when the parent is gone. */
  readonly ppid: number;
}

export interface RunUntilSignalOptions {
  logger: Logger;
  exit(code: number): void;
  /**
   * Longest time of a stop, in milliseconds; then the process exits with 1. Keep it below the time after which the
   * platform kills (Kubernetes: terminationGracePeriodSeconds).
   */
  hardLimitMs: number;
  /** Usually `process`. */
  host: HostProcess;
  /** Stop when the parent process is gone: for children of a launcher, which must not outlive a kill -9 of it. */
  stopWithParent?: boolean;
  /** Names what is still running when the hard limit is reached. Default: the service as a whole. */
  stillRunning?: () => readonly string[];
  clock?: Clock;
}

const PARENT_CHECK_MS = 1000;

/** Resolves when exit has been called, with its code. */
export async function runUntilSignal(service: Service, options: RunUntilSignalOptions): Promise<number> {
  const { logger, exit } = options;
  // Listens before the start: a signal during a slow start is not lost.
  const reasons = new StopReasons(options);
  const code = await Promise.race([startThenStop(service, reasons, options), reasons.impatient]);
  reasons.close();
  logger.info({ code }, `${service.name} exits`);
  exit(code);
  return code;
}

async function startThenStop(
  service: Service,
  reasons: StopReasons,
  options: RunUntilSignalOptions,
): Promise<number> {
  const started = service.start().then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  const outcome = await Promise.race([started, reasons.first]);
  if (typeof outcome === 'object') return notStarted(service, outcome.error, options);
  const reason = await reasons.first;
  options.logger.info({ reason, hard_limit_ms: options.hardLimitMs }, `${service.name} stops`);
  return stopWithin(service, options);
}

function notStarted(service: Service, error: unknown, { logger }: RunUntilSignalOptions): number {
  logger.error({ err: error }, `${service.name} did not start`);
  return 1;
}

async function stopWithin(service: Service, options: RunUntilSignalOptions): Promise<number> {
  const { logger, hardLimitMs, stillRunning, clock = systemClock } = options;
  let cancelTimer = (): void => {};
  const tooLate = new Promise<number>((resolve) => {
    cancelTimer = clock.after(hardLimitMs, () => {
      const left = stillRunning?.() ?? [service.name];
      logger.error(
        { still_running: left, hard_limit_ms: hardLimitMs },
        `${service.name} did not stop in time`,
      );
      resolve(1);
    });
  });
  const stopped = service.stop().then(
    () => 0,
    (error: unknown) => {
      logger.error({ err: error }, `${service.name} failed to stop`);
      return 1;
    },
  );
  const code = await Promise.race([stopped, tooLate]);
  cancelTimer();
  return code;
}

/** Collects what asks this process to stop: signals, and the end of its parent. */
class StopReasons {
  /** The first reason. */
  readonly first: Promise<string>;
  /** A second signal: the exit code with which to leave at once. */
  readonly impatient: Promise<number>;
  readonly #host: HostProcess;
  readonly #clock: Clock;
  readonly #listeners: Array<[Signal | 'disconnect', () => void]> = [];
  #signals = 0;
  #cancelCheck = (): void => {};
  #stop!: (reason: string) => void;
  #leave!: (code: number) => void;

  constructor({ host, clock = systemClock, stopWithParent = false }: RunUntilSignalOptions) {
    this.#host = host;
    this.#clock = clock;
    this.first = new Promise((resolve) => {
      this.#stop = resolve;
    });
    this.impatient = new Promise((resolve) => {
      this.#leave = resolve;
    });
    for (const signal of SIGNALS) this.#listen(signal, () => this.#onSignal(signal));
    if (stopWithParent) this.#watchParent();
  }

  close(): void {
    for (const [event, listener] of this.#listeners) this.#host.off(event, listener);
    this.#cancelCheck();
  }

  #listen(event: Signal | 'disconnect', listener: () => void): void {
    this.#listeners.push([event, listener]);
    this.#host.on(event, listener);
  }

  #onSignal(signal: Signal): void {
    this.#signals++;
    if (this.#signals === 1) this.#stop(signal);
    else this.#leave(EXIT_CODES[signal]);
  }

  /** With an IPC channel its end tells; without one only the id of the parent does. */
  #watchParent(): void {
    const parent = this.#host.ppid;
    this.#listen('disconnect', () => this.#stop('parent gone'));
    const check = (): void => {
      if (this.#host.ppid !== parent) this.#stop('parent gone');
      else this.#cancelCheck = this.#clock.after(PARENT_CHECK_MS, check);
    };
    check();
  }
}
