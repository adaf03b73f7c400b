/**
 * Puts right what crashes leave of bulk jobs, by one process of the fleet at a time: a job that somebody should have and
 * that has no job in the queue is put back; what ended long ago goes, with its work folder.
 */
import { LeasedService } from '../fleet/leased-role.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { BulkQueue } from '../queue/bulk-queue.js';
import type { Redis } from '../store/redis.js';
import { WorkFolder } from './coordinator/work-folder.js';
import type { StoredBulkJob } from './job-record.js';
import type { BulkJobStore } from './job-store.js';

const EVERY_MS = 3_000;
const LEASE_MS = 30_000;
/** A job that has just been put in gets into the queue by itself. */
const YOUNG_MS = 2_000;
export const BULK_KEPT_MS = 30 * 24 * 3_600_000;

export interface BulkSweeperOptions {
  redis: Redis;
  store: BulkJobStore;
  queue: Pick<BulkQueue, 'add'>;
  /** How long jobs are kept that have ended. Default BULK_KEPT_MS. */
  keptMs?: number;
  everyMs?: number;
  clock?: Clock;
  onError(error: Error): void;
}

export class BulkSweeper extends LeasedService {
  readonly #options: BulkSweeperOptions;
  readonly #clock: Clock;

  constructor(options: BulkSweeperOptions) {
    const { redis, store, everyMs = EVERY_MS, clock = systemClock, onError } = options;
    const key = store.keys.bulkSweeperLease();
    super({ name: 'bulk sweeper', redis, key, leaseMs: LEASE_MS, everyMs, clock, onError });
    this.#options = options;
    this.#clock = clock;
  }

  protected async takeTurn(): Promise<void> {
    const { store, queue, keptMs = BULK_KEPT_MS } = this.#options;
    const now = this.#clock.now();
    const ids = await store.open(now - YOUNG_MS);
    const jobs = await store.readMany(ids);
    for (const [i, job] of jobs.entries()) {
      const id = ids[i] as string;
      if (!job) await store.remove(id);
      // Where there is a job in the queue, or somebody has it, nothing happens.
      else if (needsCoordinator(job)) await queue.add(id);
    }
    await store.touch(ids, now);
    for (const id of await store.endedBefore(now - keptMs)) await this.#clear(id);
  }

  async #clear(id: string): Promise<void> {
    const { store } = this.#options;
    const job = await store.read(id);
    if (job) {
      const folder = new WorkFolder(job.spec.work);
      const { job: owner } = await folder.read();
      // Another job may work there by now.
      if (owner === null || owner === id) await folder.remove();
    }
    await store.remove(id);
  }
}

/** Whether somebody should have a job that is open: it is not meant to rest. */
export function needsCoordinator({ state, wanted }: Pick<StoredBulkJob, 'state' | 'wanted'>): boolean {
  if (state.status !== 'paused') return true;
  // Resumed while its coordinator was on the way out; with a reason it rests until it is resumed.
  return wanted === 'cancel' || (wanted === 'run' && state.reason === null);
}
