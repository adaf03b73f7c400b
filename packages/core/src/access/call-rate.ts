/** The rate of calls that a key may make, over all API processes: one script for each call of a key that has a limit. */
import type { RateLimit } from '@remuda/schemas';
import type { Keys } from '../store/keys.js';
import { callScript, type Redis } from '../store/redis.js';

export interface RateVerdict {
  allowed: boolean;
  /** Calls that could follow at once. */
  remaining: number;
  /** Seconds until the whole burst is there again. */
  resetS: number;
  /** Seconds until the next call is allowed; 0: it is. */
  retryAfterS: number;
}

const US = 1_000_000;

export class CallRate {
  readonly #redis: Redis;
  readonly #keys: Keys;

  constructor({ redis, keys }: { redis: Redis; keys: Keys }) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** Counts a call, unless it is one too many. */
  async take(keyId: string, { requests_per_second, burst }: RateLimit): Promise<RateVerdict> {
    const cost = US / requests_per_second;
    const reply = await callScript(this.#redis, 'countCall', [this.#keys.apiKeyRate(keyId)], [cost, burst]);
    const [allowed, remaining, reset, retryAfter] = (reply as (string | number)[]).map(Number);
    return {
      allowed: allowed === 1,
      remaining: remaining ?? 0,
      resetS: (reset ?? 0) / US,
      retryAfterS: (retryAfter ?? 0) / US,
    };
  }
}
