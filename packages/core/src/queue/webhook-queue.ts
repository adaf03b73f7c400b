/**
 * The queue of webhooks, both sides of it. A job is the id of a delivery and nothing else: what is sent, how often it was
 * tried and when it is next stands in the delivery itself (webhooks/delivery-store.ts), so a job that is lost or doubled
 * costs a look and no more. One queue for all hosts; that none holds up the others is the consumer's business.
 */
import { DelayedError, type Job, Queue, WaitingError, Worker } from 'bullmq';
import type { Redis } from '../store/redis.js';
import { queuePrefix } from './partitions.js';

const NAME = '{webhooks}';
const JOB_NAME = 'webhook';
/** Events are not read by anything of ours. */
const EVENTS_KEPT = 100;
/** Looks that failed because Redis did are repeated for as long as it takes. */
const LOOKS = 1_000_000;
const LOOK_AGAIN_MS = 5_000;
/** Times that a worker may die over a job before BullMQ drops it; the sweep of overdue deliveries puts it back. */
const MAX_STALLED_COUNT = 10;

interface QueueOptions {
  redis: Redis;
  keyPrefix: string;
  onError(error: Error): void;
}

export class WebhookQueue {
  readonly #queue: Queue<Record<string, never>>;

  constructor({ redis, keyPrefix, onError }: QueueOptions) {
    this.#queue = new Queue(NAME, {
      connection: redis,
      prefix: queuePrefix(keyPrefix),
      streams: { events: { maxLen: EVENTS_KEPT } },
      skipVersionCheck: true,
      skipMetasUpdate: true,
      skipWaitingForReady: true,
    });
    this.#queue.on('error', onError);
  }

  /** Where there is a job of that delivery already, nothing happens. */
  async add(deliveryId: string): Promise<void> {
    await this.#queue.add(
      JOB_NAME,
      {},
      {
        jobId: deliveryId,
        attempts: LOOKS,
        backoff: { type: 'fixed', delay: LOOK_AGAIN_MS },
        removeOnComplete: true,
        removeOnFail: true,
        stackTraceLimit: 1,
      },
    );
  }

  /** The same, and one that is put off is taken up now. */
  async addNow(deliveryId: string): Promise<void> {
    // 0 where a worker has it: then it is being attempted.
    await this.#queue.remove(deliveryId);
    await this.add(deliveryId);
  }

  close(): Promise<void> {
    return this.#queue.close();
  }
}

export interface WebhookConsumerOptions extends QueueOptions {
  /** Deliveries in hand at once. */
  concurrency: number;
  lockMs: number;
  /** @returns milliseconds after which it is to be looked at again; null: it has ended */
  handle(deliveryId: string): Promise<number | null>;
}

export class WebhookConsumer {
  readonly #worker: Worker<Record<string, never>>;
  readonly #options: WebhookConsumerOptions;

  constructor(options: WebhookConsumerOptions) {
    const { redis, keyPrefix, concurrency, lockMs, onError } = options;
    this.#options = options;
    this.#worker = new Worker(NAME, (job, token) => this.#take(job, token as string), {
      connection: redis,
      prefix: queuePrefix(keyPrefix),
      autorun: false,
      concurrency,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      maxStalledCount: MAX_STALLED_COUNT,
      drainDelay: 5,
      runRetryDelay: 500,
      skipVersionCheck: true,
    });
    this.#worker.on('error', onError);
  }

  start(): void {
    this.#worker.run().catch(this.#options.onError);
  }

  /** Takes up no more; those in hand go on. */
  async pause(): Promise<void> {
    await this.#worker.pause(true);
  }

  async close(force = false): Promise<void> {
    await this.#worker.close(force);
  }

  async #take(job: Job<Record<string, never>>, lockToken: string): Promise<null> {
    const againMs = await this.#options.handle(job.id as string);
    if (againMs === null) return null;
    if (againMs <= 0) {
      await job.moveToWait(lockToken);
      throw new WaitingError();
    }
    await job.moveToDelayed(Date.now() + againMs, lockToken);
    throw new DelayedError();
  }
}
