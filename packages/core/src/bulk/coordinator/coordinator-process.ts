/**
 * A coordinator as its worker sees it: a child process that is started again when it dies, a little later each time. One
 * that keeps dying before it has done anything is given up, and its job with it.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { builtFile } from '../../inference/built-file.js';
import { type Clock, systemClock } from '../../lifecycle/clock.js';
import type { CoordinatorEnd } from './coordinator.js';
import type { CoordinatorInit, FromCoordinator } from './coordinator-messages.js';
import type { CoordinatorCounts } from './work-meter.js';

const BACKOFF_MS = { first: 250, most: 15_000 };
/** Deaths in a row with not a row done in between. */
const MOST_USELESS_DEATHS = 5;
/** Of what it said last, for the reason of the job. */
const REASON_CHARACTERS = 600;

export interface CoordinatorProcessOptions {
  init: CoordinatorInit;
  /** Another entry than the real one, for tests. */
  entry?: URL;
  environment?: NodeJS.ProcessEnv;
  clock?: Clock;
  onCounts(counts: CoordinatorCounts): void;
  onDeath(reason: string): void;
}

/** given_up: it cannot live; the text says why. */
export type ProcessEnd = { kind: 'ended'; end: CoordinatorEnd } | { kind: 'given_up'; reason: string };

export class CoordinatorProcess {
  readonly #options: CoordinatorProcessOptions & { clock: Clock; entry: URL };
  #child: ChildProcess | undefined;
  #leaving = false;
  #wake: (() => void) | undefined;

  constructor(options: CoordinatorProcessOptions) {
    this.#options = {
      clock: systemClock,
      entry: builtFile('./coordinator-entry.js', import.meta.url),
      ...options,
    };
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Lives one after another until the job needs none for now. */
  async run(): Promise<ProcessEnd> {
    for (let useless = 0; ; ) {
      if (this.#leaving) return { kind: 'ended', end: 'left' };
      const life = await this.#live();
      if (life.end) return { kind: 'ended', end: life.end };
      useless = life.useful ? 1 : useless + 1;
      this.#options.onDeath(life.reason);
      if (useless >= MOST_USELESS_DEATHS) return { kind: 'given_up', reason: life.reason };
      await this.#rest(Math.min(BACKOFF_MS.first * 2 ** (useless - 1), BACKOFF_MS.most));
    }
  }

  /** It writes down what it has, and goes. */
  leave(): void {
    this.#leaving = true;
    this.#wake?.();
    if (this.#child?.connected) this.#child.send({ type: 'leave' });
  }

  /** At once: another life finds all that is in the journal. */
  kill(): void {
    this.#leaving = true;
    this.#wake?.();
    this.#child?.kill('SIGKILL');
  }

  #live(): Promise<{ end: CoordinatorEnd | null; useful: boolean; reason: string }> {
    const { entry, environment, init, onCounts } = this.#options;
    const child = fork(entry, { ...(environment ? { env: environment } : {}), serialization: 'advanced' });
    this.#child = child;
    return new Promise((resolve) => {
      let end: CoordinatorEnd | null = null;
      let useful = false;
      let said = '';
      child.on('message', (message: FromCoordinator) => {
        if (message.type === 'done') end = message.end;
        else if (message.type === 'failed') said = message.message;
        else {
          useful ||= message.counts.rows > 0;
          onCounts(message.counts);
        }
      });
      child.once('error', (error) => {
        said = error.message;
      });
      child.once('close', (code, signal) => {
        const how = signal === null ? `exit code ${code}` : `killed by ${signal}`;
        resolve({ end, useful, reason: (said || how).slice(0, REASON_CHARACTERS) });
      });
      child.send({ type: 'init', init }, () => {});
    });
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}
