/**
 * The result cache of each model in Redis: answers by digest of the request, with their sizes and the order of their
 * use, and which request leads those that are identical to it. All keys of a model share a slot, so each step is one
 * script. What an answer is good for stands in requests/coalescing.ts.
 */
import type { Lane } from '@remuda/schemas';
import type { Keys } from './keys.js';
import { callScript, type Redis } from './redis.js';

/** What of the cache's rule a request keeps with it. Written into its document at acceptance. */
export interface CacheTicket {
  /** Equal for requests that have the same answer. */
  digest: string;
  /** 0: answers are not kept, only shared by requests that are under way at the same time. */
  ttlMs: number;
  maxBytes: number;
  /** Answers go to other tenants too. */
  shared: boolean;
}

/** Where a request stands, as far as leading and following go. */
export interface Place {
  requestId: string;
  model: string;
  lane: Lane;
  /** 0 first, 9 last. */
  priority: number;
  ticket: CacheTicket;
}

export type Look =
  | { kind: 'hit'; from: string; frames: Buffer[] }
  | { kind: 'follow'; leader: string }
  | { kind: 'lead' };

export interface Kept {
  kept: boolean;
  /** Of the whole cache of the model. */
  bytes: number;
  evicted: number;
}

/** Longer than any request waits; only what crashes left behind goes by it. */
const LEADER_MS = 7 * 24 * 3600 * 1000;
/** What an entry costs beside its frames: keys, order, sizes. */
const ENTRY_BYTES = 300;
const MOST_DROPPED = 50;

export class CacheStore {
  readonly #redis: Redis;
  readonly #keys: Keys;

  constructor(redis: Redis, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** @param gone a leader that is known to lead no longer */
  async look({ requestId, model, lane, priority, ticket }: Place, gone = ''): Promise<Look> {
    const args = [ticket.digest, lane, requestId, priority, LEADER_MS, gone];
    const reply = (await callScript(this.#redis, 'lookInCache', this.#base(model), args, true)) as Buffer[];
    const [kind, leader] = reply.slice(0, 2).map(String);
    if (kind === 'hit') return hitOf(reply);
    return kind === 'follow' ? { kind, leader: leader as string } : { kind: 'lead' };
  }

  /** @param from the request whose answer it is */
  async keep(model: string, ticket: CacheTicket, from: string, frames: readonly Buffer[]): Promise<Kept> {
    const bytes = frames.reduce((sum, { length }) => sum + length, ENTRY_BYTES);
    const fields = frames.flatMap((frame, item) => [`o:${item}`, frame]);
    const args = [ticket.digest, ticket.ttlMs, ticket.maxBytes, bytes, MOST_DROPPED, 'from', from, ...fields];
    const reply = await callScript(this.#redis, 'keepInCache', this.#base(model), args);
    const [kept, now, evicted] = reply as [number, number, number];
    return { kept: kept === 1, bytes: now, evicted };
  }

  /** No request will follow this one from now on. */
  async leave({ requestId, model, lane, ticket }: Omit<Place, 'priority'>): Promise<void> {
    await callScript(this.#redis, 'leaveCache', this.#base(model), [ticket.digest, lane, requestId]);
  }

  /** Some of those that follow a request. */
  followers(model: string, leader: string, count: number): Promise<string[]> {
    return this.#redis.srandmember(this.#followers(model, leader), count);
  }

  async dropFollowers(model: string, leader: string, ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#redis.srem(this.#followers(model, leader), ...ids);
  }

  #base(model: string): [string] {
    return [this.#keys.resultCache(model)];
  }

  #followers(model: string, leader: string): string {
    return `${this.#keys.resultCache(model)}:followers:${leader}`;
  }
}

/** Fields and values of the entry behind its kind. */
function hitOf(reply: readonly Buffer[]): Look {
  const frames: Buffer[] = [];
  let from = '';
  for (let i = 1; i + 1 < reply.length; i += 2) {
    const field = String(reply[i]);
    const value = reply[i + 1] as Buffer;
    if (field === 'from') from = String(value);
    else frames[Number(field.slice(2))] = value;
  }
  return { kind: 'hit', from, frames };
}
