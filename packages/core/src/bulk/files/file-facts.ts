/**
 * The Redis side of the file store: the facts of each file, and lists of ids by tenant, by time and by the time at which
 * they go. All keys share a slot, so a file is in all of them or in none.
 */
import { bulkFileTime } from '../../ids.js';
import type { Keys } from '../../store/keys.js';
import { type Place, placesOf } from '../../store/newest-first.js';
import type { Redis } from '../../store/redis.js';
import { parseStored, type StoredFile } from './stored-file.js';

const FIELD = 'facts';

export class FileFacts {
  readonly #redis: Redis;
  readonly #keys: Keys;

  constructor(redis: Redis, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  async put(file: StoredFile): Promise<void> {
    const { id, tenant, created_ms, expires_ms } = file;
    const steps = this.#redis
      .multi()
      .hset(this.#keys.bulkFile(id), FIELD, JSON.stringify(file))
      .zadd(this.#keys.bulkFiles(null), created_ms, id)
      .zadd(this.#keys.bulkFiles(tenant), created_ms, id);
    if (expires_ms !== null) steps.zadd(this.#keys.bulkFilesDue(), expires_ms, id);
    throwFirst(await steps.exec());
  }

  async get(id: string): Promise<StoredFile | undefined> {
    const text = await this.#redis.hget(this.#keys.bulkFile(id), FIELD);
    return text === null ? undefined : parseStored(text);
  }

  /** undefined: Redis has none. In the order of the ids. */
  async getAll(ids: readonly string[]): Promise<(StoredFile | undefined)[]> {
    return Promise.all(ids.map((id) => this.get(id)));
  }

  /** @param tenant undefined: not known any more; then it is taken out of the list of all */
  async forget(id: string, tenant: string | undefined): Promise<void> {
    const steps = this.#redis
      .multi()
      .del(this.#keys.bulkFile(id))
      .zrem(this.#keys.bulkFiles(null), id)
      .zrem(this.#keys.bulkFilesDue(), id);
    if (tenant !== undefined) steps.zrem(this.#keys.bulkFiles(tenant), id);
    throwFirst(await steps.exec());
  }

  /** Where a file stands in the list, also when it has gone since; undefined: it never stood there. */
  async placeOf(id: string): Promise<Place | undefined> {
    const score = await this.#redis.zscore(this.#keys.bulkFiles(null), id);
    const at = score === null ? bulkFileTime(id) : Number(score);
    return at === null ? undefined : { id, at };
  }

  /** The ids behind a place. @param tenant null: of all */
  async page(
    tenant: string | null,
    { after, count, order }: { after: Place | undefined; count: number; order: 'asc' | 'desc' },
  ): Promise<Place[]> {
    const key = this.#keys.bulkFiles(tenant);
    const found: Place[] = [];
    // Ids of the same millisecond as the place are passed over by name, since a score alone does not order them.
    for (let offset = 0; found.length < count; offset += count) {
      const flat =
        order === 'asc'
          ? await this.#redis.zrangebyscore(
              key,
              after?.at ?? '-inf',
              '+inf',
              'WITHSCORES',
              'LIMIT',
              offset,
              count,
            )
          : await this.#redis.zrevrangebyscore(
              key,
              after?.at ?? '+inf',
              '-inf',
              'WITHSCORES',
              'LIMIT',
              offset,
              count,
            );
      const page = placesOf(flat);
      found.push(...page.filter((place) => after === undefined || isBehind(place, after, order)));
      if (page.length < count) break;
    }
    return found.slice(0, count);
  }

  /** Ids whose time has passed. @param now Unix milliseconds */
  due(now: number, count: number): Promise<string[]> {
    return this.#redis.zrangebyscore(this.#keys.bulkFilesDue(), '-inf', now, 'LIMIT', 0, count);
  }

  /** Asked for again then. */
  async postpone(id: string, untilMs: number): Promise<void> {
    await this.#redis.zadd(this.#keys.bulkFilesDue(), 'XX', untilMs, id);
  }
}

function isBehind(place: Place, after: Place, order: 'asc' | 'desc'): boolean {
  if (place.at !== after.at) return true;
  return order === 'asc' ? place.id > after.id : place.id < after.id;
}

function throwFirst(replies: [Error | null, unknown][] | null): void {
  const failed = replies?.find(([error]) => error !== null);
  if (failed?.[0]) throw failed[0];
}
