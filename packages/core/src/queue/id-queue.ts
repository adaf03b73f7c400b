/**
 * A queue whose jobs are an id and nothing else, both sides of it: what the id stands for, and where it has got to, is in a
 * record of its own, so a job that is lost or doubled costs a look and no more. Webhooks and bulk jobs have one each.
 */
import { DelayedError, type Job, Queue, WaitingError, Worker } from 'bullmq';
import type { Redis } from '../store/redis.js';
import { queuePrefix } from './partitions.js';

/** Events are not read by anything of ours. */
const EVENTS_KEPT = 100;
/** Looks that failed because Redis did are repeated for as long as it takes. */
const LOOKS = 1_000_000;

export interface QueueConnection {
  redis: Redis;
  keyPrefix: string;
  onError(error: Error): void;
}

export interface IdQueueOptions extends QueueConnection {
  /** In braces: the hash tag of its keys. */
  name: string;
  jobName: string;
  /** Pause behind a look that failed. */
  lookAgainMs: number;
}

export class IdQueue {
  readonly #queue: Queue<Record<string, never>>;
  readonly #options: IdQueueOptions;

  constructor(options: IdQueueOptions) {
    const { name, redis, keyPrefix, onError } = options;
    this.#options = options;
    this.#queue = new Queue(name, {
      connection: redis,
      prefix: queuePrefix(keyPrefix),
      streams: { events: { maxLen: EVENTS_KEPT } },
      skipVersionCheck: true,
      skipMetasUpdate: true,
      skipWaitingForReady: true,
    });
    this.#queue.on('error', onError);
  }

  /** Where there is a job of that id already, nothing happens. */
  async add(id: string): Promise<void> {
    const { jobName, lookAgainMs } = this.#options;
    await this.#queue.add(
      jobName,
      {},
      {
        jobId: id,
        attempts: LOOKS,
        backoff: { type: 'fixed', delay: lookAgainMs },
        removeOnComplete: true,
        removeOnFail: true,
        stackTraceLimit: 1,
      },
    );
  }

  /** The same, and one that is put off is taken up now. */
  async addNow(id: string): Promise<void> {
    // 0 where a worker has it: then it is under way.
    await this.#queue.remove(id);
    await this.add(id);
  }

  close(): Promise<void> {
    return this.#queue.close();
  }
}

export interface IdConsumerOptions extends QueueConnection {
  name: string;
  /** In hand at once. */
  concurrency: number;
  lockMs: number;
  /** Times that a worker may die over a job before BullMQ drops it; a sweep puts it back. */
  maxStalledCount: number;
  /** @returns milliseconds after which it is to be looked at again, 0 at once, by whoever is free; null: it has ended */
  handle(id: string): Promise<number | null>;
  /** It has ended and is out of the queue. */
  onOut?(id: string): void;
}

export class IdConsumer {
  readonly #worker: Worker<Record<string, never>>;
  readonly #options: IdConsumerOptions;

  constructor(options: IdConsumerOptions) {
    const { name, redis, keyPrefix, concurrency, lockMs, maxStalledCount, onError, onOut } = options;
    this.#options = options;
    this.#worker = new Worker(name, (job, token) => this.#take(job, token as string), {
      connection: redis,
      prefix: queuePrefix(keyPrefix),
      autorun: false,
      concurrency,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      maxStalledCount,
      drainDelay: 5,
      runRetryDelay: 500,
      skipVersionCheck: true,
    });
    this.#worker.on('error', onError);
    if (onOut) this.#worker.on('completed', (job) => onOut(job.id as string));
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
