/**
 * Whether there is room for one more: the depth of the queue it would join, and the memory of Redis. Both are asked
 * for at most once a second; between two answers what this process itself has let in is counted on top, so a burst
 * within one second is stopped too. Several API processes may together go over the limit by what they take in in a
 * second: it guards against floods, it is not a ledger.
 */
import { RemudaError } from '../errors.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { JobQueues } from '../queue/job-queue.js';
import type { Partition } from '../queue/partitions.js';
import { QueueDepths } from '../queue/queue-depths.js';
import type { Redis } from '../store/redis.js';
import { memoryShare } from '../store/redis-memory.js';

/** How long an answer of Redis about its memory is good for. */
const FRESH_MS = 1_000;
/** Above this share of maxmemory nothing is accepted: acknowledgements and results need the rest. */
const FULL_SHARE = 0.8;

export interface AdmissionOptions {
  redis: Redis;
  queues: Pick<JobQueues, 'of'>;
  /** Most jobs that may wait in one partition. */
  maxQueueDepth: number;
  clock?: Clock;
}

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #clock: Clock;
  /** Also what routes are chosen by. */
  readonly depths: QueueDepths;
  #memoryAskedAt = 0;
  #fullAt: number | null = null;
  #stopping = false;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.depths = new QueueDepths({ queues: options.queues, clock: this.#clock });
  }

  /** From now on everything is refused. */
  close(): void {
    this.#stopping = true;
  }

  /**
   * Lets one request in, and counts it. Only the first one of a partition waits, until its depth is known.
   * @throws RemudaError over_capacity, store_full, shutting_down, store_unavailable
   */
  async admit(partition: Partition): Promise<void> {
    if (this.#stopping) throw new RemudaError('shutting_down', 'this server is stopping: ask another one');
    this.#checkMemory(this.#clock.now());
    const depth = await this.depths.first(partition);
    // Not gone on without an answer: the store would be asked next, and two waits are too long for one caller.
    if (!depth) throw unanswered();
    const { maxQueueDepth } = this.#options;
    if (depth.waiting >= maxQueueDepth) {
      throw new RemudaError(
        'over_capacity',
        `${partition.model} has ${depth.waiting} requests waiting on ${partition.deviceClass} (${partition.lane}); the limit is ${maxQueueDepth}`,
        { waiting: depth.waiting, limit: maxQueueDepth },
      );
    }
    this.depths.count(partition);
  }

  #checkMemory(now: number): void {
    if (now - this.#memoryAskedAt >= FRESH_MS) {
      this.#memoryAskedAt = now;
      this.#askMemory().catch(() => {});
    }
    if (this.#fullAt === null) return;
    const percent = Math.round(this.#fullAt * 100);
    throw new RemudaError(
      'store_full',
      `Redis has used ${percent} % of its maxmemory; nothing is accepted above 80 %`,
      {
        used_percent: percent,
      },
    );
  }

  async #askMemory(): Promise<void> {
    const share = await memoryShare(this.#options.redis);
    this.#fullAt = share >= FULL_SHARE ? share : null;
  }
}

function unanswered(): RemudaError {
  return new RemudaError('store_unavailable', 'Redis did not say how deep the queue is');
}
