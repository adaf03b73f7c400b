/**
 * Wakes workers that sleep on a model: they have no consumer on the queue of one that they have not loaded, and a model
 * that is loaded on demand is loaded by its first request. One message for each queue in a while is enough: who hears
 * it takes all that waits there. One that is lost costs time and no request, since workers look now and then.
 */
import { type Clock, systemClock } from '../lifecycle/clock.js';
import { type Partition, queueName } from '../queue/partitions.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';

const RING_EVERY_MS = 200;

export interface DoorbellOptions {
  redis: Redis;
  keys: Keys;
  onError(error: Error): void;
  clock?: Clock;
  everyMs?: number;
}

export class Doorbell {
  readonly #options: DoorbellOptions;
  readonly #clock: Clock;
  /** Unix milliseconds by queue. */
  readonly #rungAt = new Map<string, number>();

  constructor(options: DoorbellOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** After the job is in the queue. Does not wait. */
  ring(partition: Partition): void {
    const { redis, keys, onError, everyMs = RING_EVERY_MS } = this.#options;
    const queue = queueName(partition);
    const now = this.#clock.now();
    if (now - (this.#rungAt.get(queue) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
    this.#rungAt.set(queue, now);
    redis.publish(keys.doorbell(), queue).catch(onError);
  }
}
