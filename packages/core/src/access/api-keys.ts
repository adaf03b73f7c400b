/**
 * API keys in Redis: made, rotated, revoked, listed. Each change is one script that also tells every API process
 * (key-view.ts), so that who has had the answer may rely on it. A secret leaves this file once, towards its owner.
 */
import { type ApiKey, type ApiKeyCreate, type ApiKeyRotate, type IssuedKey, refuse } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { newKeyId } from '../ids.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Keys } from '../store/keys.js';
import { callScript, type Redis } from '../store/redis.js';
import { newKeyText } from './key-text.js';

/** As it lies in Redis: what people see, and the hashes of its secrets in base64. */
export type StoredKey = Omit<ApiKey, 'last_used_at'> & { hash: string; old_hash: string | null };

export interface ApiKeysOptions {
  redis: Redis;
  keys: Keys;
  clock?: Clock;
}

const MOST_TRIES = 20;
/** Keys that nobody can use any more are listed for that long. */
const KEPT_AFTER_END_MS = 90 * 24 * 3600 * 1000;

export class ApiKeys {
  readonly #redis: Redis;
  readonly #keys: Keys;
  readonly #clock: Clock;

  constructor({ redis, keys, clock = systemClock }: ApiKeysOptions) {
    this.#redis = redis;
    this.#keys = keys;
    this.#clock = clock;
  }

  /** @throws InvalidInputError where expires_at is not in the future */
  async create({ expires_at, ...rest }: ApiKeyCreate): Promise<IssuedKey> {
    this.checkExpiry(expires_at);
    const id = newKeyId();
    const { text, hash, hint } = newKeyText(id);
    const stored: StoredKey = {
      id,
      ...rest,
      hint,
      created_at: this.#iso(),
      expires_at,
      rotated_at: null,
      old_secret_until: null,
      revoked_at: null,
      hash,
      old_hash: null,
    };
    await this.#save(id, '', stored);
    await this.#prune();
    return { key: present(stored, undefined), secret: text };
  }

  /** Newest first. */
  async list(): Promise<ApiKey[]> {
    const [stored, uses] = await Promise.all([this.#all(), this.#redis.hgetall(this.#keys.apiKeyUses())]);
    const found = stored.map((key) => present(key, uses[key.id]));
    return found.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
  }

  /** @throws RemudaError key_not_found */
  async get(id: string): Promise<ApiKey> {
    const [stored, use] = await Promise.all([this.read(id), this.#redis.hget(this.#keys.apiKeyUses(), id)]);
    if (!stored) throw notFound(id);
    return present(stored, use ?? undefined);
  }

  /** What a call is checked against; null: there is no such key. */
  async read(id: string): Promise<StoredKey | null> {
    const text = await this.#redis.hget(this.#keys.apiKeys(), id);
    return text === null ? null : parse(text);
  }

  /** Gives a key a new secret. @throws RemudaError key_not_found; InvalidInputError as create */
  async rotate(id: string, { overlap_s, expires_at }: ApiKeyRotate): Promise<IssuedKey> {
    this.checkExpiry(expires_at);
    const { text, hash, hint } = newKeyText(id);
    const key = await this.#edit(id, (before) => {
      if (before.revoked_at !== null) {
        throw new RemudaError(
          'key_not_found',
          `key ${id} was revoked at ${before.revoked_at}: create another`,
        );
      }
      const old = overlap_s > 0;
      return {
        ...before,
        ...(expires_at === undefined ? {} : { expires_at }),
        hash,
        hint,
        rotated_at: this.#iso(),
        old_hash: old ? before.hash : null,
        old_secret_until: old ? this.#iso(overlap_s * 1000) : null,
      };
    });
    return { key, secret: text };
  }

  /** From the answer on no API process takes it. Again: nothing changes. @throws RemudaError key_not_found */
  async revoke(id: string): Promise<ApiKey> {
    return this.#edit(id, (before) => ({ ...before, revoked_at: before.revoked_at ?? this.#iso() }));
  }

  /** Whether anybody could call with some key; with `scope`, with one that has it. */
  async anyUsable(scope?: ApiKey['scopes'][number]): Promise<boolean> {
    const now = this.#clock.now();
    const fits = (key: StoredKey): boolean => scope === undefined || key.scopes.includes(scope);
    return (await this.#all()).some((key) => fits(key) && isUsable(key, now));
  }

  /** @param uses Unix milliseconds by key id */
  async noteUses(uses: ReadonlyMap<string, number>): Promise<void> {
    await this.#redis.hset(this.#keys.apiKeyUses(), Object.fromEntries(uses));
  }

  async #all(): Promise<StoredKey[]> {
    return Object.values(await this.#redis.hgetall(this.#keys.apiKeys())).map(parse);
  }

  async #edit(id: string, change: (before: StoredKey) => StoredKey): Promise<ApiKey> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const [text, use] = await Promise.all([
        this.#redis.hget(this.#keys.apiKeys(), id),
        this.#redis.hget(this.#keys.apiKeyUses(), id),
      ]);
      if (text === null) throw notFound(id);
      const next = change(parse(text));
      if (await this.#save(id, text, next)) return present(next, use ?? undefined);
    }
    throw new RemudaError('internal', `key ${id} is being changed all the time: try again`);
  }

  async #save(id: string, before: string, next: StoredKey): Promise<boolean> {
    const args = [id, before, JSON.stringify(next), this.#keys.apiKeysChanged()];
    return (await callScript(this.#redis, 'saveAccess', [this.#keys.apiKeys()], args)) === 1;
  }

  async #prune(): Promise<void> {
    const before = this.#clock.now() - KEPT_AFTER_END_MS;
    const over = (await this.#all()).filter((key) => !isUsable(key, before)).map(({ id }) => id);
    if (over.length === 0) return;
    await this.#redis.hdel(this.#keys.apiKeys(), ...over);
    await this.#redis.hdel(this.#keys.apiKeyUses(), ...over);
  }

  /** @throws InvalidInputError where it is not in the future; null: never */
  checkExpiry(expiresAt: string | null | undefined): void {
    if (expiresAt == null || Date.parse(expiresAt) > this.#clock.now()) return;
    refuse(['expires_at'], `a time after now (${this.#iso()})`, expiresAt, 'invalid_request');
  }

  #iso(afterMs = 0): string {
    return new Date(this.#clock.now() + afterMs).toISOString();
  }
}

/** Neither revoked nor expired at that time. */
export function isUsable({ revoked_at, expires_at }: StoredKey, now: number): boolean {
  // Whatever the time: the clock of the process that revoked it may be ahead of this one.
  if (revoked_at !== null) return false;
  return expires_at === null || Date.parse(expires_at) > now;
}

function parse(text: string): StoredKey {
  return JSON.parse(text) as StoredKey;
}

function present({ hash, old_hash, ...key }: StoredKey, usedMs: string | undefined): ApiKey {
  return { ...key, last_used_at: usedMs === undefined ? null : new Date(Number(usedMs)).toISOString() };
}

function notFound(id: string): RemudaError {
  return new RemudaError('key_not_found', `there is no API key "${id}"; \`remuda keys list\` shows all`);
}
