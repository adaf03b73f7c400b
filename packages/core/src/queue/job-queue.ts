/**
 * Both sides of the queue on one page; the only home of BullMQ. File 4 of the tour.
 *
 * A job is a claim ticket: ids and small facts, never tensors. Its id is the request id, so adding it twice is one
 * job. BullMQ's own job state is not the state of the request: that stands in the record (store/request-store.ts).
 *
 * Fencing: each time a worker takes up a job, BullMQ counts attemptsStarted up. That count (plus where an earlier,
 * lost job of the same request had got to) is the token which the store compares on every write, so a worker that
 * stood still and woke up cannot touch what another has taken over.
 *
 * Next: apps/worker/src/process-job.ts.
 */
/// <reference path="./bullmq-scripts.d.ts" />
import { DEFAULT_TENANT } from '@remuda/schemas';
import { DelayedError, type Job, type JobJson, Queue, WaitingError, Worker } from 'bullmq';
import { addPrioritizedJob } from 'bullmq/dist/cjs/scripts/addPrioritizedJob-9.js';
import { PRIORITY_STEP_ROWS } from '../fairness/fair-tags.js';
import { RETURNED_PRIORITY, SCORE_ROOM } from '../fairness/places.js';
import type { Redis } from '../store/redis.js';
import type { StoredRecord, UnitRun } from '../store/stored-record.js';
import { type BullmqClient, FairAdd } from './fair-add.js';
import { type Partition, queueName, queuePrefix } from './partitions.js';
import { jobIdOf } from './queue-keys.js';
import { JOB_ATTEMPTS, MAX_STALLED_COUNT, pauseAfter, STALLED_EVERY_MS } from './retry-policy.js';

/** What a job holds. */
export interface JobTicket {
  requestId: string;
  nonce: string;
  version: string;
  traceId: string;
  /** Unix milliseconds. */
  acceptedAt: number;
  /** By which it must begin to run, Unix milliseconds; 0: none. */
  deadline: number;
  /** By which it must have ended, Unix milliseconds; 0: none. Tickets of older builds have none. */
  finishDeadline?: number;
  /** 0 first, 9 last. */
  priority: number;
  inline: boolean;
  units: UnitRun[];
  /** Whose turn it takes; absent in tickets of older builds. */
  tenant?: string;
  /** Share of that tenant when it was added; absent: 1. */
  weight?: number;
  /** Token that an earlier, lost job of this request had reached. */
  tokenBase: number;
}

/** Takes the turns of copies for shadow versions; no name that a tenant can have. */
const SHADOW_TENANT = '~shadow';

/** The ticket of a stored record: for the first add, and again when the sweeper puts a lost job back. */
export function ticketOf(record: StoredRecord): JobTicket {
  const { document } = record;
  return {
    requestId: record.requestId,
    nonce: record.nonce,
    version: document.version,
    traceId: document.traceId,
    acceptedAt: record.acceptedAt,
    deadline: record.deadline,
    finishDeadline: record.finishDeadline,
    priority: document.metadata.priority,
    inline: document.inline,
    units: document.units,
    // Nobody pays for copies that nobody asked for.
    tenant: document.shadowOf === undefined ? document.tenant : SHADOW_TENANT,
    tokenBase: record.token,
  };
}

const JOB_NAME = 'request';
/** Events are not read by anything of ours; a short stream keeps their memory small. */
const EVENTS_KEPT = 100;

const JOB_OPTIONS = {
  attempts: JOB_ATTEMPTS,
  backoff: { type: 'remuda' },
  // The record keeps what people ask for; a finished job has no reader.
  removeOnComplete: true,
  removeOnFail: true,
  stackTraceLimit: 1,
} as const;

/** How jobs are found whose worker has died; BullMQ's script for it reads these of the queue's options, too. */
const STALLED = { stalledInterval: STALLED_EVERY_MS, maxStalledCount: MAX_STALLED_COUNT };

/** What of BullMQ's backend is not in its interface: adding by way of another client than its own. */
interface RedisBackend {
  addJobToTransaction(client: BullmqClient, job: JobJson, jobId: string, parent: object): Promise<unknown>;
}

function rowsOf({ units }: Pick<JobTicket, 'units'>): number {
  return units.reduce((sum, [count, rows]) => sum + count * rows, 0);
}

/** What a job that no worker has had yet says about its runs. */
const NEVER_RUN = {
  progress: 0,
  attemptsMade: 0,
  attemptsStarted: 0,
  stalledCounter: 0,
  failedReason: '',
  returnvalue: 'null',
  stacktrace: '[]',
} satisfies Partial<JobJson>;

export interface JobQueueOptions {
  redis: Redis;
  keyPrefix: string;
  onError(error: Error): void;
  /** Share of a tenant while others wait too, above 0. Default: 1 for all. */
  weightOf?(tenant: string): number;
  /** Rows of head start that one level of priority gives. Default: PRIORITY_STEP_ROWS. */
  priorityStepRows?: number;
  /** For tests: how far scores may go before what waits is moved down. Default: SCORE_ROOM. */
  scoreRoom?: number;
}

/** The producer's side of one partition. */
export class JobQueue {
  readonly #queue: Queue<JobTicket>;
  readonly #redis: Redis;
  readonly #weightOf: (tenant: string) => number;
  readonly #fair: FairAdd;

  constructor(
    readonly partition: Partition,
    options: JobQueueOptions,
  ) {
    this.#redis = options.redis;
    this.#weightOf = options.weightOf ?? (() => 1);
    this.#queue = new Queue(queueName(partition), {
      connection: options.redis,
      prefix: queuePrefix(options.keyPrefix),
      streams: { events: { maxLen: EVENTS_KEPT } },
      skipVersionCheck: true,
      skipMetasUpdate: true,
      // Fail fast where Redis is away; a queue is only made while the connection is ready.
      skipWaitingForReady: true,
      ...STALLED,
    });
    this.#queue.on('error', options.onError);
    this.#fair = new FairAdd({
      redis: options.redis,
      keyOf: (name) => this.#queue.toKey(name),
      bullmqScript: addPrioritizedJob.content,
      stepRows: options.priorityStepRows ?? PRIORITY_STEP_ROWS,
      room: options.scoreRoom ?? SCORE_ROOM,
    });
  }

  /**
   * Adds the job of a request at the turn of its tenant; where it is there already, nothing happens. BullMQ's backend
   * packs what Queue.add would make of it (building a Job object, checking and tracing it cost more than sending it;
   * a test compares the two), and its script runs within ours.
   */
  async add(ticket: JobTicket): Promise<void> {
    const { tenant = DEFAULT_TENANT } = ticket;
    const weight = this.#weightOf(tenant);
    const backend = this.#queue.backend as unknown as RedisBackend;
    const turn = { tenant, weight, rows: rowsOf(ticket), priority: ticket.priority };
    const job = this.#jobOf(weight === 1 ? ticket : { ...ticket, weight });
    const jobId = jobIdOf(ticket.requestId);
    await backend.addJobToTransaction(this.#fair.client(jobId, turn), job, jobId, {});
  }

  /** The same for many, in one write. */
  async addMany(tickets: readonly JobTicket[]): Promise<void> {
    await Promise.all(tickets.map((ticket) => this.add(ticket)));
  }

  // Every job has a priority, or BullMQ would run those without before all others. It counts when a job comes back.
  #jobOf(ticket: JobTicket): JobJson {
    const jobId = jobIdOf(ticket.requestId);
    return {
      id: jobId,
      name: JOB_NAME,
      data: JSON.stringify(ticket),
      opts: { ...JOB_OPTIONS, jobId, priority: RETURNED_PRIORITY },
      timestamp: Date.now(),
      ...NEVER_RUN,
    };
  }

  /** Takes the job off the queue. False: a worker holds it, or there is none. */
  async remove(requestId: string): Promise<boolean> {
    return (await this.#queue.remove(jobIdOf(requestId))) === 1;
  }

  async has(requestId: string): Promise<boolean> {
    return (await this.#queue.getJobState(jobIdOf(requestId))) !== 'unknown';
  }

  async depth(): Promise<{ waiting: number; active: number }> {
    const counts = await this.#queue.getJobCounts('waiting', 'prioritized', 'delayed', 'active');
    const waiting = (counts.waiting ?? 0) + (counts.prioritized ?? 0) + (counts.delayed ?? 0);
    return { waiting, active: counts.active ?? 0 };
  }

  /** Unix milliseconds of the job that would be taken next (bounded: one of each kind is looked at); null: none waits. */
  async oldestAt(): Promise<number | null> {
    const heads = await this.#queue.getJobs(['waiting', 'prioritized'], 0, 0, true);
    const times = heads.flatMap((job) => job?.data.acceptedAt ?? []);
    return times.length > 0 ? Math.min(...times) : null;
  }

  /** Jobs that are taken before this one; null: it does not wait in line (a worker has it, or it is put off). */
  position(requestId: string): Promise<number | null> {
    return this.#redis.zrank(this.#queue.toKey('prioritized'), jobIdOf(requestId));
  }

  /** Jobs that wait and would be taken before one of that tenant and priority that is added now. */
  async countBefore(tenant: string, priority: number): Promise<number> {
    const turn = { tenant, weight: this.#weightOf(tenant), rows: 1, priority };
    const score = await this.#fair.scoreOf(turn);
    return this.#redis.zcount(this.#queue.toKey('prioritized'), '-inf', score);
  }

  /** Up to `count` jobs that no worker holds, next ones first. */
  async waiting(count: number): Promise<QueuedJob[]> {
    return queuedJobs(await this.#queue.getJobs(['prioritized', 'waiting', 'delayed'], 0, count - 1, true));
  }

  /** Up to `count` jobs whose worker has gone: it let their locks run out, and no other has put them back. */
  async abandoned(count: number): Promise<QueuedJob[]> {
    const active = queuedJobs(await this.#queue.getJobs(['active'], 0, count - 1, true));
    const locks = await Promise.all(
      active.map(({ requestId }) => this.#redis.exists(`${this.#queue.toKey(jobIdOf(requestId))}:lock`)),
    );
    return active.filter((_, i) => locks[i] === 0);
  }

  /**
   * Puts back the jobs whose locks had run out when this was last called, and notes those that are held now: what
   * workers on the queue do each second, for a queue that may have none. Returns how many were put back; where workers
   * are there, or another has just looked, it does nothing.
   */
  async freeStalled(): Promise<number> {
    const freed = (await this.#queue.backend.moveStalledJobsToWait()) as unknown[];
    return freed.length;
  }

  close(): Promise<void> {
    return this.#queue.close();
  }
}

/** A job as others than its worker see it. */
export interface QueuedJob {
  requestId: string;
  /** Fencing token of the last attempt that took it up. */
  token: number;
}

function queuedJobs(jobs: readonly (Job<JobTicket> | undefined)[]): QueuedJob[] {
  // A job that went while the list was read has no data.
  return jobs.flatMap((job) =>
    job?.data?.requestId
      ? [{ requestId: job.data.requestId, token: job.data.tokenBase + job.attemptsStarted }]
      : [],
  );
}

/** One taken-up job, as the worker app sees it. */
export interface TakenJob {
  ticket: JobTicket;
  partition: Partition;
  /** Fencing token of this attempt. */
  token: number;
  /** Its last worker died or stood still while it had it. */
  suspect: boolean;
  /** Attempts that have failed before this one. */
  failures: number;
  /** Puts the job back, at once or after a while, not counted as an attempt. Throw what it returns. */
  handBack(delayMs?: number): Promise<Error>;
  /** Puts the job back for the request that has its id now. Throw what it returns. */
  passOn(ticket: JobTicket): Promise<Error>;
}

export interface ConsumerOptions {
  partition: Partition;
  redis: Redis;
  keyPrefix: string;
  /** Jobs held at once: at least twice the rows of a batch, or batches never fill. */
  concurrency: number;
  lockMs: number;
  handle(job: TakenJob): Promise<void>;
  /** BullMQ gave the job up for good (stalled too often, or its last attempt threw). */
  onGivenUp(ticket: JobTicket, reason: string): void;
  onLockLost(requestIds: string[]): void;
  onError(error: Error): void;
}

/** The worker's side of one partition: BullMQ's Worker, whose locks this process holds and renews. */
export class JobConsumer {
  readonly #worker: Worker<JobTicket>;
  /** Time at which a job was last taken up or finished: what the liveness watchdog looks at. */
  lastProgressAt = Date.now();
  #inHand = 0;

  constructor(readonly options: ConsumerOptions) {
    const { partition, redis, keyPrefix, concurrency, lockMs } = options;
    this.#worker = new Worker<JobTicket>(
      queueName(partition),
      (job, token) => this.#take(job, token as string),
      {
        connection: redis,
        prefix: queuePrefix(keyPrefix),
        autorun: false,
        concurrency,
        lockDuration: lockMs,
        ...STALLED,
        drainDelay: 5,
        runRetryDelay: 500,
        skipVersionCheck: true,
        settings: { backoffStrategy: (attempt, _type, error) => pauseAfter(attempt, error) },
      },
    );
    this.#worker.on('error', options.onError);
    this.#worker.on('failed', (job, error) => {
      if (!job) return;
      const final = job.attemptsMade >= (job.opts.attempts ?? 1) || /stalled more than/.test(error.message);
      if (final) options.onGivenUp(job.data, error.message);
    });
    this.#worker.on('lockRenewalFailed', (ids) => options.onLockLost(ids));
  }

  start(): void {
    this.#worker.run().catch((error: Error) => this.options.onError(error));
  }

  /** Jobs that it has taken and not yet put away. */
  get inHand(): number {
    return this.#inHand;
  }

  /** Jobs held at once, from now on. */
  set concurrency(jobs: number) {
    if (this.#worker.concurrency !== jobs) this.#worker.concurrency = jobs;
  }

  /** Takes up no more jobs; those under way go on. */
  async pause(): Promise<void> {
    await this.#worker.pause(true);
  }

  /** @param force gives up on jobs still under way: their locks run out and other workers take them. */
  async close(force = false): Promise<void> {
    await this.#worker.close(force);
  }

  async #take(job: Job<JobTicket>, lockToken: string): Promise<null> {
    this.lastProgressAt = Date.now();
    this.#inHand++;
    const taken: TakenJob = {
      ticket: job.data,
      partition: this.options.partition,
      token: job.data.tokenBase + job.attemptsStarted,
      suspect: job.stalledCounter > 0,
      failures: job.attemptsMade,
      handBack: async (delayMs = 0) => {
        if (delayMs > 0) {
          await job.moveToDelayed(Date.now() + delayMs, lockToken);
          return new DelayedError();
        }
        await job.moveToWait(lockToken);
        return new WaitingError();
      },
      passOn: async (ticket) => {
        await job.updateData(ticket);
        await job.moveToWait(lockToken);
        return new WaitingError();
      },
    };
    try {
      await this.options.handle(taken);
    } finally {
      this.#inHand--;
    }
    this.lastProgressAt = Date.now();
    // Results never go through BullMQ: its event stream would keep a copy of each.
    return null;
  }
}

/** The producer's queues, one for each partition, made when first needed. */
export class JobQueues {
  readonly #queues = new Map<string, JobQueue>();

  constructor(private readonly options: JobQueueOptions) {}

  of(partition: Partition): JobQueue {
    const name = queueName(partition);
    let queue = this.#queues.get(name);
    if (!queue) {
      queue = new JobQueue(partition, this.options);
      this.#queues.set(name, queue);
    }
    return queue;
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#queues.values()].map((queue) => queue.close()));
    this.#queues.clear();
  }
}
