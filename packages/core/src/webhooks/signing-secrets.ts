/**
 * The secret that webhooks of a tenant are signed with: made when it is first needed, shown to its admins, rotated with
 * an overlap in which the secret before signs too, so that no receiver has to change at one moment. It lies in Redis as
 * it is, since it has to sign: who reads that Redis can sign.
 */
import type { WebhookSigningSecret } from '@remuda/schemas';
import type { Keys } from '../store/keys.js';
import { callScript, type Redis } from '../store/redis.js';
import { newWebhookSecret } from './sign.js';

interface OldSecret {
  secret: string;
  /** Unix milliseconds. */
  until: number;
}

interface Secrets {
  secret: string;
  createdAt: number;
  /** Those that still sign, newest first. */
  old: OldSecret[];
}

export class SigningSecrets {
  readonly #redis: Redis;
  readonly #keys: Keys;

  constructor(redis: Redis, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** All that sign now, newest first. */
  async valid(tenant: string, now: number): Promise<string[]> {
    const { secret, old } = await this.#read(tenant, now);
    return [secret, ...old.map((entry) => entry.secret)];
  }

  async describe(tenant: string, now: number): Promise<WebhookSigningSecret> {
    const { secret, createdAt, old } = await this.#read(tenant, now);
    const until = Math.max(0, ...old.map((entry) => entry.until));
    return {
      tenant,
      secret,
      created_at: new Date(createdAt).toISOString(),
      previous_until: until === 0 ? null : new Date(until).toISOString(),
    };
  }

  /** @param overlapMs how long the secret before goes on signing; 0: none before does from now on */
  async rotate(tenant: string, overlapMs: number, now: number): Promise<WebhookSigningSecret> {
    await this.#read(tenant, now);
    const keys = [this.#keys.webhookSecret(tenant)];
    await callScript(this.#redis, 'rotateWebhookSecret', keys, [newWebhookSecret(), now, now + overlapMs]);
    return this.describe(tenant, now);
  }

  async #read(tenant: string, now: number): Promise<Secrets> {
    const key = this.#keys.webhookSecret(tenant);
    const read = () => this.#redis.hmget(key, 'secret', 'at', 'old');
    let [secret, at, old] = await read();
    if (!secret) {
      // Of two processes that make one at the same moment the first wins.
      await this.#redis.hsetnx(key, 'at', String(now));
      await this.#redis.hsetnx(key, 'secret', newWebhookSecret());
      [secret, at, old] = await read();
    }
    const known = JSON.parse(old ?? '[]') as OldSecret[];
    return {
      secret: secret as string,
      createdAt: Number(at ?? now),
      old: known.filter(({ until }) => until > now).reverse(),
    };
  }
}
