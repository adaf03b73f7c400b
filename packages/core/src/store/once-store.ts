/**
 * The records of idempotency keys in Redis. A record is made before anything else of the call is, and holds the seed of
 * the request ids of the call: whoever takes the call over, in whatever process, makes the same requests again, which
 * the request store knows. What is done with them stands in requests/idempotency.ts.
 */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Keys } from './keys.js';
import { callScript, type Redis } from './redis.js';

/** An answer as it is given again. */
export interface KeptAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export type OnceState =
  | { kind: 'first' | 'again'; seed: string }
  | { kind: 'busy'; leftMs: number }
  | { kind: 'mismatch' }
  | { kind: 'answered'; answer: KeptAnswer };

export interface OnceTimes {
  leaseMs: number;
  ttlMs: number;
}

/** Records of a thousand requests are much alike: they take a twentieth of their size. */
const PACKED_FROM_BYTES = 4 * 1024;
const pack = promisify(gzip);
const unpack = promisify(gunzip);

export class OnceStore {
  readonly #redis: Redis;
  readonly #keys: Keys;

  constructor(redis: Redis, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** @param ids token of this call, and the seed that counts where it is the first */
  async begin(
    keyHash: string,
    fingerprint: string,
    { token, seed }: { token: string; seed: string },
    { leaseMs, ttlMs }: OnceTimes,
  ): Promise<OnceState> {
    const args = [fingerprint, token, seed, leaseMs, ttlMs];
    const reply = (await callScript(
      this.#redis,
      'beginOnce',
      [this.#keys.once(keyHash)],
      args,
      true,
    )) as Buffer[];
    const [kind, value] = reply.slice(0, 2).map(String);
    if (kind === 'answered') return { kind, answer: await answerOf(reply) };
    if (kind === 'busy') return { kind, leftMs: Number(value) };
    if (kind === 'mismatch') return { kind };
    return { kind: kind as 'first' | 'again', seed: value as string };
  }

  /** False: another call has taken over, and its answer will count. */
  async answered(keyHash: string, token: string, { status, headers, body }: KeptAnswer): Promise<boolean> {
    const packed = body.length >= PACKED_FROM_BYTES;
    const bytes = packed ? await pack(body) : Buffer.from(body);
    const args = [token, 'answered', status, JSON.stringify(headers), bytes, packed ? '1' : ''];
    return (await callScript(this.#redis, 'settleOnce', [this.#keys.once(keyHash)], args)) === 1;
  }

  /** @param what let_go: the next call goes on with the same ids. forget: nothing has come of the call. */
  async drop(keyHash: string, token: string, what: 'let_go' | 'forget'): Promise<void> {
    await callScript(this.#redis, 'settleOnce', [this.#keys.once(keyHash)], [token, what]);
  }

  /** The answer is kept: that these ids were accepted need not be remembered beside it. */
  async forgetIds(requestIds: readonly string[]): Promise<void> {
    const forget = (ids: readonly string[]) =>
      this.#redis.unlink(...ids.map((id) => this.#keys.acceptedOnce(id)));
    await Promise.all(this.#keys.byShard(requestIds, (id) => id).map(forget));
  }
}

async function answerOf([, status, headers, body, packed]: Buffer[]): Promise<KeptAnswer> {
  const bytes = body as Buffer;
  return {
    status: Number(status),
    headers: JSON.parse(String(headers)) as Record<string, string>,
    body: (packed?.length ? await unpack(bytes) : bytes).toString('utf8'),
  };
}
