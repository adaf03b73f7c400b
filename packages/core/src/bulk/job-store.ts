/**
 * Bulk jobs in Redis. Each life of a coordinator has an epoch, and what it writes is refused once there is a newer one;
 * what the use cases write is refused where the job has changed since they read it. Nothing here is the truth of which
 * rows are done: that is the journal on the disk (coordinator/work-folder.ts).
 */
import type { Sight } from '../access/caller.js';
import type { Keys } from '../store/keys.js';
import { placesOf } from '../store/newest-first.js';
import { callScript, type Redis } from '../store/redis.js';
import type { BulkSpec, BulkState, BulkWish, StoredBulkJob } from './job-record.js';

const FIELDS = ['spec', 'state', 'wanted', 'wantedAt', 'priority', 'epoch'] as const;
/** Times that a wish is tried beside a coordinator that writes its progress. */
const STEER_TRIES = 20;
/** Ids looked at together. */
const PAGE = 100;

export interface Steering {
  state?: BulkState;
  wanted?: BulkWish;
  priority?: number;
  /** open: a coordinator is to have it. anew: another than the one that has ended it. closed: none is, and one that has it must stop. */
  place?: 'open' | 'anew' | 'closed';
}

export class BulkJobStore {
  readonly #redis: Redis;
  readonly keys: Keys;

  constructor(redis: Redis, keys: Keys) {
    this.#redis = redis;
    this.keys = keys;
  }

  /** @returns false: there is one of that id */
  async create(spec: BulkSpec, state: BulkState, priority: number): Promise<boolean> {
    const { id, tenant, createdAt } = spec;
    const { keys } = this;
    const lists = [keys.bulkJobs(null), keys.bulkJobs(tenant), keys.bulkOpen()];
    const args = [id, JSON.stringify(spec), JSON.stringify(state), priority, createdAt];
    return (await callScript(this.#redis, 'createBulkJob', [keys.bulkJob(id), ...lists], args)) === 1;
  }

  async read(id: string): Promise<StoredBulkJob | null> {
    return (await this.#readWithText(id))?.job ?? null;
  }

  async readMany(ids: readonly string[]): Promise<(StoredBulkJob | null)[]> {
    return Promise.all(ids.map((id) => this.read(id)));
  }

  /**
   * Begins a life of a coordinator. @param seen the newest epoch in its work folder
   * @returns its epoch; null: the job is gone
   */
  async take(id: string, seen: number): Promise<number | null> {
    const epoch = await callScript(this.#redis, 'takeBulkJob', [this.keys.bulkJob(id)], [seen]);
    return epoch === 0 ? null : (epoch as number);
  }

  /**
   * What the life of that epoch says of the job. @param closedAt set: nothing more is to be done for it
   * @returns false: a newer life has it, or it is gone
   */
  async write(id: string, epoch: number, state: BulkState, closedAt?: number): Promise<boolean> {
    const args = [id, epoch, JSON.stringify(state), closedAt ?? ''];
    return (await callScript(this.#redis, 'writeBulkJob', this.#keysOf(id), args)) === 1;
  }

  /**
   * Changes what is wanted of a job. @param change what of it; asked again where the job has changed meanwhile
   * @returns the job as it is now; null: there is none
   */
  async steer(
    id: string,
    now: number,
    change: (job: StoredBulkJob) => Steering,
  ): Promise<StoredBulkJob | null> {
    for (let tries = 0; tries < STEER_TRIES; tries++) {
      const found = await this.#readWithText(id);
      if (!found) return null;
      const { state, wanted, priority, place } = change(found.job);
      const args = [
        ...[id, found.state, state ? JSON.stringify(state) : '', wanted ?? '', priority ?? '', now],
        ...[place ?? '', this.keys.bulkChanged()],
      ];
      const verdict = await callScript(this.#redis, 'steerBulkJob', this.#keysOf(id), args);
      if (verdict === -1) return null;
      if (verdict === 1) return this.read(id);
    }
    throw new Error(`bulk job ${id} changed ${STEER_TRIES} times while something was asked of it`);
  }

  /** Newest first. @param after id of the last one seen */
  async list(
    { limit, after }: { limit: number; after?: string },
    sight: Sight = null,
  ): Promise<{ jobs: StoredBulkJob[]; hasMore: boolean }> {
    const key = this.keys.bulkJobs(sight);
    const rank = after === undefined ? null : await this.#redis.zrevrank(key, after);
    let from = rank === null ? 0 : rank + 1;
    const jobs: StoredBulkJob[] = [];
    while (jobs.length <= limit) {
      const ids = await this.#redis.zrevrange(key, from, from + limit);
      if (ids.length === 0) break;
      jobs.push(...(await this.readMany(ids)).filter((job) => job !== null));
      from += ids.length;
    }
    return { jobs: jobs.slice(0, limit), hasMore: jobs.length > limit };
  }

  /** Ids of jobs that a coordinator is to have, put in by that time, oldest first. */
  async open(before: number, most = PAGE): Promise<string[]> {
    return this.#redis.zrangebyscore(
      this.keys.bulkOpen(),
      '-inf',
      Number.isFinite(before) ? before : '+inf',
      'LIMIT',
      0,
      most,
    );
  }

  /** Whether a coordinator still has something to do for it. */
  async isOpen(id: string): Promise<boolean> {
    return (await this.#redis.zscore(this.keys.bulkOpen(), id)) !== null;
  }

  /** They were looked at now: the next look goes to others first. */
  async touch(ids: readonly string[], now: number): Promise<void> {
    if (ids.length === 0) return;
    await this.#redis.zadd(this.keys.bulkOpen(), 'XX', ...ids.flatMap((id) => [now, id]));
  }

  /** Jobs that ended by that time. */
  async endedBefore(time: number, most = PAGE): Promise<string[]> {
    const flat = await this.#redis.zrangebyscore(
      ...([this.keys.bulkEnded(), '-inf', time, 'WITHSCORES', 'LIMIT', 0, most] as const),
    );
    return placesOf(flat).map(({ id }) => id);
  }

  /** Takes a job and its places in lists away. */
  async remove(id: string): Promise<void> {
    const job = await this.read(id);
    const { keys } = this;
    if (job) await this.#redis.zrem(keys.bulkJobs(job.spec.tenant), id);
    await this.#redis.zrem(keys.bulkJobs(null), id);
    await this.#redis.zrem(keys.bulkOpen(), id);
    await this.#redis.unlink(keys.bulkJob(id));
    await this.#redis.zrem(keys.bulkEnded(), id);
  }

  #keysOf(id: string): string[] {
    return [this.keys.bulkJob(id), this.keys.bulkOpen(), this.keys.bulkEnded()];
  }

  async #readWithText(id: string): Promise<{ job: StoredBulkJob; state: string } | null> {
    const [spec, state, wanted, wantedAt, priority, epoch] = await this.#redis.hmget(
      this.keys.bulkJob(id),
      ...FIELDS,
    );
    if (!spec || !state) return null;
    const job: StoredBulkJob = {
      spec: JSON.parse(spec) as BulkSpec,
      state: JSON.parse(state) as BulkState,
      wanted: wanted as BulkWish,
      wantedAt: Number(wantedAt),
      priority: Number(priority),
      epoch: Number(epoch),
    };
    return { job, state };
  }
}
