/**
 * The queue of bulk jobs, both sides of it: who has a job here may coordinate it. A job is its id and nothing else; what
 * it is and where it stands is in its own record (bulk/job-store.ts), so a queue job that is lost or doubled costs a look.
 * A worker that dies loses the lock, and another takes the job up.
 */
import { type Job, Queue, WaitingError, Worker } from 'bullmq';
import type { Redis } from '../store/redis.js';
import { queuePrefix } from './partitions.js';

const NAME = '{bulk}';
const JOB_NAME = 'bulk';
/** Events are not read by anything of ours. */
const EVENTS_KEPT = 100;
/** Looks that failed because Redis did are repeated for as long as it takes. */
const LOOKS = 1_000_000;
const LOOK_AGAIN_MS = 1_000;
/** Times that a worker may die over a job before BullMQ drops it; the sweep puts it back. */
const MAX_STALLED_COUNT = 100;

interface QueueOptions {
  redis: Redis;
  keyPrefix: string;
  onError(error: Error): void;
}

export class BulkQueue {
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

  /** Where there is a job of that id already, nothing happens. */
  async add(bulkJobId: string): Promise<void> {
    await this.#queue.add(
      JOB_NAME,
      {},
      {
        jobId: bulkJobId,
        attempts: LOOKS,
        backoff: { type: 'fixed', delay: LOOK_AGAIN_MS },
        removeOnComplete: true,
        removeOnFail: true,
        stackTraceLimit: 1,
      },
    );
  }

  close(): Promise<void> {
    return this.#queue.close();
  }
}

export interface BulkConsumerOptions extends QueueOptions {
  /** Jobs in hand at once. */
  concurrency: number;
  lockMs: number;
  /** @returns done: nothing is to be done for it now. again: somebody else is to go on with it. */
  handle(bulkJobId: string): Promise<'done' | 'again'>;
  /** It is out of the queue: what was asked for while it was on the way out has been added to nothing. */
  onOut(bulkJobId: string): void;
}

export class BulkConsumer {
  readonly #worker: Worker<Record<string, never>>;
  readonly #options: BulkConsumerOptions;

  constructor(options: BulkConsumerOptions) {
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
    this.#worker.on('completed', (job) => options.onOut(job.id as string));
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
    if ((await this.#options.handle(job.id as string)) === 'done') return null;
    await job.moveToWait(lockToken);
    throw new WaitingError();
  }
}
