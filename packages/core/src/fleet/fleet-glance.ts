/**
 * The fleet for who asks now and then and must not be told what was true before it asked: each answer comes from a
 * reading that began after the question. However many ask at once, one reading is under way at a time, and it fetches
 * only the heartbeats that are new (heartbeat-reader.ts). Where Redis does not answer in time, what was last seen
 * counts.
 */
import type { WorkerHeartbeat } from '@remuda/schemas';
import type { Clock } from '../lifecycle/clock.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { HeartbeatReader } from './heartbeat-reader.js';

export interface FleetGlanceOptions {
  redis: Redis;
  keys: Keys;
  clock: Clock;
  onError(error: Error): void;
  /** Longest wait for an answer, in milliseconds; default 1,000. */
  patienceMs?: number;
}

const PATIENCE_MS = 1_000;

export class FleetGlance {
  readonly #options: FleetGlanceOptions;
  readonly #reader: HeartbeatReader;
  #last: readonly WorkerHeartbeat[] = [];
  #underWay: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(options: FleetGlanceOptions) {
    this.#options = options;
    this.#reader = new HeartbeatReader(options);
  }

  /** All live workers. Does not reject. */
  async workers(): Promise<readonly WorkerHeartbeat[]> {
    if (this.#options.redis.status !== 'ready') return this.#last;
    const { clock, patienceMs = PATIENCE_MS } = this.#options;
    let cancel = (): void => {};
    const patience = new Promise<void>((resolve) => {
      cancel = clock.after(patienceMs, resolve);
    });
    await Promise.race([this.#readAfterNow(), patience]);
    cancel();
    return this.#last;
  }

  /** A reading under way may have missed what was written just before the question. */
  #readAfterNow(): Promise<void> {
    if (!this.#underWay) return this.#read();
    this.#next ??= this.#underWay.then(() => {
      this.#next = undefined;
      return this.#read();
    });
    return this.#next;
  }

  #read(): Promise<void> {
    this.#underWay = this.#reader
      .read()
      .then((workers) => {
        this.#last = workers;
      }, this.#options.onError)
      .finally(() => {
        this.#underWay = undefined;
      });
    return this.#underWay;
  }
}
