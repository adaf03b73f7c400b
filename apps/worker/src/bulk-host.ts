/**
 * Takes bulk jobs from their queue and keeps a coordinator for each: a child process, replaced when it dies. On a stop the
 * coordinators write down what they have and leave, and their jobs go to other workers. A worker that sees another
 * REMUDA_FILES than the fleet takes none, and says so.
 */
import { resolve } from 'node:path';
import { BulkSweeper, needsCoordinator } from '@remuda/core/bulk/bulk-sweeper';
import type { CoordinatorInit } from '@remuda/core/bulk/coordinator/coordinator-messages';
import {
  CoordinatorProcess,
  type CoordinatorProcessOptions,
} from '@remuda/core/bulk/coordinator/coordinator-process';
import type { CoordinatorCounts } from '@remuda/core/bulk/coordinator/work-meter';
import { sameFolder } from '@remuda/core/bulk/files/folder-identity';
import { giveUpJob } from '@remuda/core/bulk/give-up-job';
import { BulkJobStore } from '@remuda/core/bulk/job-store';
import { RemudaError } from '@remuda/core/errors';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import type { Logger } from '@remuda/core/observability/logger';
import type { Metrics } from '@remuda/core/observability/metrics';
import { BulkConsumer, BulkQueue } from '@remuda/core/queue/bulk-queue';
import type { Keys } from '@remuda/core/store/keys';
import type { Redis } from '@remuda/core/store/redis';

export interface BulkHostOptions {
  /** Jobs that are coordinated at once. */
  jobs: number;
  redis: Redis;
  keys: Keys;
  lockMs: number;
  /** How long coordinators may take to leave. */
  drainMs: number;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  init: Omit<CoordinatorInit, 'jobId'>;
  environment: NodeJS.ProcessEnv;
  /** Another coordinator than the real one, for tests. */
  entry?: URL;
  onError(error: Error): void;
}

const LOOK_AT_FOLDER_MS = 30_000;

export class BulkHost implements Service {
  readonly name = 'bulk host';
  readonly #options: BulkHostOptions;
  readonly #store: BulkJobStore;
  readonly #queue: BulkQueue;
  readonly #sweeper: BulkSweeper;
  readonly #coordinators = new Map<string, CoordinatorProcess>();
  readonly #inFlight = new Map<string, number>();
  #consumer: BulkConsumer | undefined;
  #stopped = false;
  #cancelLook: () => void = () => {};
  #toldFolder = false;

  constructor(options: BulkHostOptions) {
    const { redis, keys, clock, onError } = options;
    this.#options = options;
    this.#store = new BulkJobStore(redis, keys);
    this.#queue = new BulkQueue({ redis, keyPrefix: keys.space.prefix, onError });
    this.#sweeper = new BulkSweeper({ redis, store: this.#store, queue: this.#queue, clock, onError });
  }

  /** Pids of the coordinators that live, by job. */
  get coordinators(): ReadonlyMap<string, number | undefined> {
    return new Map([...this.#coordinators].map(([id, one]) => [id, one.pid]));
  }

  async start(): Promise<void> {
    await this.#begin();
  }

  /** No more is taken; those that are here leave, or are cut off when the time is up. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#cancelLook();
    const paused = this.#consumer?.pause();
    for (const coordinator of this.#coordinators.values()) coordinator.leave();
    const cancel = this.#options.clock.after(this.#options.drainMs, () => {
      for (const coordinator of this.#coordinators.values()) coordinator.kill();
    });
    // Only now: its turn may wait for a Redis that is away.
    await this.#sweeper.stop();
    await paused;
    // Waits for the jobs in hand.
    await this.#consumer?.close();
    cancel();
    await this.#queue.close();
  }

  /** Takes jobs once this worker sees the files of the fleet; until then it looks again. */
  async #begin(): Promise<void> {
    const { redis, keys, init, jobs, lockMs, onError, clock, logger } = this.#options;
    if (this.#stopped) return;
    try {
      await sameFolder({ folder: init.filesFolder, redis, keys });
    } catch (error) {
      if (!this.#toldFolder) logger.warn({ err: error }, 'this worker coordinates no bulk jobs');
      this.#toldFolder = true;
      if (!(error instanceof RemudaError)) onError(error as Error);
      this.#cancelLook = clock.after(LOOK_AT_FOLDER_MS, () => void this.#begin().catch(onError));
      return;
    }
    // It may have been stopped while it looked.
    if (this.#stopped) return;
    const handle = (id: string): Promise<'done' | 'again'> => this.#handle(id);
    const keyPrefix = keys.space.prefix;
    const onOut = (id: string): void => void this.#lookAgain(id).catch(onError);
    this.#consumer = new BulkConsumer({
      redis,
      keyPrefix,
      concurrency: jobs,
      lockMs,
      handle,
      onOut,
      onError,
    });
    this.#consumer.start();
    await this.#sweeper.start();
  }

  /** It may have been resumed just as it left the queue. */
  async #lookAgain(jobId: string): Promise<void> {
    if (!this.#stopped && (await this.#isWanted(jobId))) await this.#queue.add(jobId);
  }

  async #isWanted(jobId: string): Promise<boolean> {
    const job = await this.#store.read(jobId);
    return job !== null && needsCoordinator(job) && this.#store.isOpen(jobId);
  }

  async #handle(jobId: string): Promise<'done' | 'again'> {
    const { logger } = this.#options;
    for (;;) {
      if (this.#stopped) return 'again';
      const job = await this.#store.read(jobId);
      if (!job || !(await this.#isWanted(jobId))) return 'done';
      const coordinator = this.#newCoordinator(jobId, job.spec.traceId);
      this.#coordinators.set(jobId, coordinator);
      const { kind, ...ended } = await coordinator.run().finally(() => {
        this.#coordinators.delete(jobId);
        this.#count(jobId, 0);
      });
      if (kind === 'given_up') {
        const reason = (ended as { reason: string }).reason;
        logger.error({ batch_id: jobId, reason }, 'bulk job given up: its coordinator keeps dying');
        await giveUpJob(this.#store, jobId, reason, this.#options.clock);
        continue;
      }
      const { end } = ended as { end: string };
      if (end === 'left') return 'again';
      if (end === 'fenced' || end === 'gone') return 'done';
      // It may have been resumed while its coordinator was on the way out.
    }
  }

  #newCoordinator(jobId: string, traceId: string): CoordinatorProcess {
    const { init, environment, entry, clock, logger, metrics } = this.#options;
    logger.info({ batch_id: jobId, trace_id: traceId }, 'bulk job taken');
    const options: CoordinatorProcessOptions = {
      ...{ init: { ...init, jobId, filesFolder: resolve(init.filesFolder) }, environment, clock },
      ...(entry ? { entry } : {}),
      onCounts: (counts) => this.#onCounts(jobId, counts),
      onDeath: (reason) => {
        metrics.bulkCoordinatorDeaths.inc({});
        logger.warn({ batch_id: jobId, trace_id: traceId, reason }, 'a coordinator died and is replaced');
      },
    };
    return new CoordinatorProcess(options);
  }

  #onCounts(jobId: string, { rows, failed, repeated, chunksInFlight }: CoordinatorCounts): void {
    const { bulkRows } = this.#options.metrics;
    if (rows > failed) bulkRows.inc({ outcome: 'answered' }, rows - failed);
    if (failed > 0) bulkRows.inc({ outcome: 'failed' }, failed);
    if (repeated > 0) bulkRows.inc({ outcome: 'repeated' }, repeated);
    this.#count(jobId, chunksInFlight);
  }

  #count(jobId: string, chunks: number): void {
    const { bulkChunksInFlight, bulkJobs } = this.#options.metrics;
    if (this.#coordinators.has(jobId)) this.#inFlight.set(jobId, chunks);
    else this.#inFlight.delete(jobId);
    bulkJobs.set({}, this.#coordinators.size);
    bulkChunksInFlight.set(
      {},
      [...this.#inFlight.values()].reduce((sum, one) => sum + one, 0),
    );
  }
}
