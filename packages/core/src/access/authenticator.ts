/**
 * From the text of an API key to the caller that it stands for. Keys are kept in memory, so a key that was seen before
 * costs no question to Redis. That is right only while this process hears of every change: it asks its subscription
 * twice a second for a sign of life, and where that stays out (cut, half dead, Redis away) each call asks Redis again.
 * So a key that was revoked is refused by every API process: as soon as the message is there, else at the next call, and
 * after two seconds at the latest where a connection has died without a word. Redis away: nobody is let in.
 */

import { RemudaError } from '../errors.js';
import { Repeat } from '../fleet/repeat.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { StoreGuard } from '../requests/store-guard.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { type ApiKeys, isUsable, type StoredKey } from './api-keys.js';
import type { Caller } from './caller.js';
import { parseKeyText, sameHash } from './key-text.js';

export interface AuthenticatorOptions {
  store: Pick<ApiKeys, 'read'>;
  guard: Pick<StoreGuard, 'run'>;
  /** A connection of role `subscriber`, which others may use too. */
  subscriber: Redis;
  keys: Keys;
  onError(error: Error): void;
  clock?: Clock;
}

const CONFIRM_EVERY_MS = 500;
/** A subscription that has shown no life for so long is not relied on. */
const RELIED_ON_MS = 2_000;
const MOST_KEPT = 10_000;

interface KnownKey {
  stored: StoredKey;
  hash: Buffer;
  /** The secret before, and until when it is taken. */
  old: { hash: Buffer; untilMs: number } | null;
  caller: Caller;
}

export class Authenticator implements Service {
  readonly name = 'authenticator';
  readonly #options: AuthenticatorOptions;
  readonly #clock: Clock;
  readonly #repeat: Repeat;
  readonly #known = new Map<string, KnownKey>();
  /** Counts what makes an answer of Redis that is still under way too old to keep. */
  #changes = 0;
  /** Counts connections of the subscriber. */
  #connection = 0;
  #confirming = false;
  /** When the last sign of life was asked for that came; undefined: none on this connection. */
  #aliveAt: number | undefined;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#repeat = new Repeat({
      everyMs: CONFIRM_EVERY_MS,
      clock: this.#clock,
      onError: options.onError,
      turn: async () => this.#confirm(),
    });
  }

  async start(): Promise<void> {
    const { subscriber } = this.#options;
    subscriber.on('message', this.#heard);
    subscriber.on('close', this.#lost);
    subscriber.on('ready', this.#confirmNow);
    await this.#repeat.start();
  }

  async stop(): Promise<void> {
    const { subscriber } = this.#options;
    subscriber.off('message', this.#heard);
    subscriber.off('close', this.#lost);
    subscriber.off('ready', this.#confirmNow);
    await this.#repeat.stop();
  }

  /** Whether keys are taken from memory now. */
  get hearsChanges(): boolean {
    const age = this.#clock.now() - (this.#aliveAt ?? Number.NEGATIVE_INFINITY);
    return age >= 0 && age < RELIED_ON_MS;
  }

  /**
   * At once where the key is known, else after a look into Redis.
   * @throws RemudaError unauthorized, store_unavailable
   */
  authenticate(text: string): Caller | Promise<Caller> {
    const parsed = parseKeyText(text);
    if (!parsed) throw unauthorized('the Authorization header holds no API key of this server: rmd_…');
    const known = this.hearsChanges ? this.#known.get(parsed.id) : undefined;
    if (known) return this.#check(known, parsed.hash);
    return this.#read(parsed.id).then((read) => this.#check(read, parsed.hash));
  }

  async #read(id: string): Promise<KnownKey | null> {
    const { guard, store } = this.#options;
    const changes = this.#changes;
    const stored = await guard.run(() => store.read(id));
    if (!stored) return null;
    const read = knownKey(stored);
    if (changes === this.#changes && this.hearsChanges) {
      if (this.#known.size >= MOST_KEPT) this.#known.clear();
      this.#known.set(id, read);
    }
    return read;
  }

  /** Of a key that is not there and one with another secret the same is said. */
  #check(known: KnownKey | null, hash: Buffer): Caller {
    const now = this.#clock.now();
    if (!known || !hasSecret(known, hash, now)) throw unauthorized('the API key is not known');
    const { stored, caller } = known;
    if (isUsable(stored, now)) return caller;
    const why = stored.revoked_at ? `was revoked at ${stored.revoked_at}` : `expired at ${stored.expires_at}`;
    throw unauthorized(`the API key ${stored.id} ${why}`);
  }

  readonly #heard = (channel: string, id: string): void => {
    if (channel !== this.#options.keys.apiKeysChanged()) return;
    this.#changes++;
    this.#known.delete(id);
  };

  readonly #lost = (): void => {
    this.#connection++;
    this.#confirming = false;
    this.#aliveAt = undefined;
    this.#forget();
  };

  readonly #confirmNow = (): void => {
    this.#confirming = false;
    this.#confirm();
  };

  /** Subscribing again is the sign of life: the answer says that this very connection is subscribed. */
  #confirm(): void {
    const { subscriber, keys, onError } = this.#options;
    if (this.#confirming || subscriber.status !== 'ready') return;
    this.#confirming = true;
    const [connection, askedAt] = [this.#connection, this.#clock.now()];
    subscriber.subscribe(keys.apiKeysChanged()).then(() => {
      if (connection !== this.#connection) return;
      this.#confirming = false;
      // What was told while nobody listened is not known; what was told before the answer has been heard.
      if (this.#aliveAt === undefined) this.#forget();
      this.#aliveAt = askedAt;
    }, onError);
  }

  #forget(): void {
    this.#changes++;
    this.#known.clear();
  }
}

function knownKey(stored: StoredKey): KnownKey {
  const { id, tenant, scopes, rate_limit, hash, old_hash, old_secret_until } = stored;
  const old =
    old_hash !== null && old_secret_until !== null
      ? { hash: Buffer.from(old_hash, 'base64'), untilMs: Date.parse(old_secret_until) }
      : null;
  const caller: Caller = { keyId: id, tenant, scopes: new Set(scopes), rateLimit: rate_limit };
  return { stored, hash: Buffer.from(hash, 'base64'), old, caller };
}

function hasSecret({ hash, old }: KnownKey, given: Buffer, now: number): boolean {
  if (sameHash(given, hash)) return true;
  return old !== null && sameHash(given, old.hash) && now < old.untilMs;
}

function unauthorized(message: string): RemudaError {
  return new RemudaError('unauthorized', message, { given: true });
}
