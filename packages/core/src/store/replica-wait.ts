/**
 * Waits until replicas have what was written, so that a failover to one of them loses nothing of it. Replicas follow
 * in order: once they have a mark that was written later, they have everything before it. The mark and the WAIT go over
 * a connection of their own, since a WAIT holds up whatever comes behind it on its connection. All who ask while one
 * is under way share the next.
 */
import { RemudaError } from '../errors.js';
import type { Keys } from './keys.js';
import type { Redis } from './redis.js';

export interface ReplicaWaitOptions {
  /** A connection of role `api`, for this alone; to no Cluster. */
  redis: Redis;
  keys: Keys;
  /** How many replicas must confirm. */
  replicas: number;
  /** How long they may take, in milliseconds; below the 1.2 s that a command of the API may take. */
  withinMs: number;
}

/** Nobody reads the mark. */
const MARK_MS = 10_000;

export class ReplicaWait {
  readonly #options: ReplicaWaitOptions;
  #underWay: Promise<number> | undefined;
  #next: Promise<number> | undefined;

  constructor(options: ReplicaWaitOptions) {
    this.#options = options;
  }

  /** Resolves when enough replicas have all that was written before. @throws RemudaError store_unavailable */
  async confirm(): Promise<void> {
    const { replicas, withinMs } = this.#options;
    const confirmed = await this.#afterNow();
    if (confirmed >= replicas) return;
    throw new RemudaError(
      'store_unavailable',
      `${confirmed} of ${replicas} replicas of Redis have confirmed it within ${withinMs} ms; it was not accepted`,
    );
  }

  /** The mark under way may have been written before what is asked about. */
  #afterNow(): Promise<number> {
    if (!this.#underWay) return this.#wait();
    this.#next ??= this.#underWay
      .catch(() => 0)
      .then(() => {
        this.#next = undefined;
        return this.#wait();
      });
    return this.#next;
  }

  #wait(): Promise<number> {
    const { redis, keys, replicas, withinMs } = this.#options;
    const answers = Promise.all([
      redis.set(keys.replicaMark(), '', 'PX', MARK_MS),
      redis.wait(replicas, withinMs),
    ]);
    const waiting = answers
      .then(([, confirmed]) => confirmed)
      .finally(() => {
        if (this.#underWay === waiting) this.#underWay = undefined;
      });
    this.#underWay = waiting;
    return waiting;
  }
}
