/**
 * Hears of requests for models that are not loaded anywhere: at once by the channel on which the API rings, and within
 * some seconds by a look at the queues that have no consumer here, where a ring was lost.
 */
import { Repeat } from '@remuda/core/fleet/repeat';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import { type Partition, partitionOf, queueName } from '@remuda/core/queue/partitions';
import { queuesWithJobs } from '@remuda/core/queue/queues-with-jobs';
import type { Keys } from '@remuda/core/store/keys';
import type { Redis } from '@remuda/core/store/redis';

export interface DoorbellOptions {
  redis: Redis;
  /** A connection of role `subscriber`, which others may use too. */
  subscriber: Redis;
  keys: Keys;
  clock: Clock;
  /** Queues without a consumer here that this worker could serve. */
  unattended(): Partition[];
  /** Whether some live worker serves the model there: what waits is not forgotten, only waiting. */
  isServed(partition: Partition): Promise<boolean>;
  /** A request waits. */
  onRing(partition: Partition): void;
  onError(error: Error): void;
}

const LOOK_EVERY_MS = 7_000;

export class Doorbell implements Service {
  readonly name = 'doorbell';
  readonly #options: DoorbellOptions;
  readonly #repeat: Repeat;

  constructor(options: DoorbellOptions) {
    this.#options = options;
    const { clock, onError } = options;
    this.#repeat = new Repeat({ everyMs: LOOK_EVERY_MS, clock, onError, turn: () => this.look() });
  }

  async start(): Promise<void> {
    const { subscriber, keys, onError } = this.#options;
    subscriber.on('message', this.#heard);
    subscriber.subscribe(keys.doorbell()).catch(onError);
    await this.#repeat.start();
  }

  async stop(): Promise<void> {
    this.#options.subscriber.off('message', this.#heard);
    await this.#repeat.stop();
  }

  /** Tells all workers that a request waits in the queue. */
  async ring(partition: Partition): Promise<void> {
    const { redis, keys } = this.#options;
    if (redis.status === 'ready') await redis.publish(keys.doorbell(), queueName(partition));
  }

  /** The safety net. */
  async look(): Promise<void> {
    const { redis, keys, unattended, isServed, onRing } = this.#options;
    if (redis.status !== 'ready') return;
    const waiting = await queuesWithJobs(redis, keys.space.prefix, unattended());
    for (const partition of waiting) if (!(await isServed(partition))) onRing(partition);
  }

  #heard = (channel: string, message: string): void => {
    if (channel !== this.#options.keys.doorbell()) return;
    const partition = partitionOf(message);
    if (partition) this.#options.onRing(partition);
  };
}
