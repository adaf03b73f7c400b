/**
 * Cursors for who sees requests of one tenant alone. A cursor is the place of the last request that was looked at, and
 * that may be somebody else's, whose id is none of the reader's business: so it is sealed, with a key that all API
 * processes share and for that tenant.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export class CursorSealer {
  readonly #redis: Redis;
  readonly #keys: Keys;
  #key: Buffer | undefined;

  constructor({ redis, keys }: { redis: Redis; keys: Keys }) {
    this.#redis = redis;
    this.#keys = keys;
  }

  async seal(cursor: string, tenant: string): Promise<string> {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, await this.#sharedKey(), nonce).setAAD(Buffer.from(tenant));
    const sealed = Buffer.concat([cipher.update(cursor, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url');
  }

  /** null: none of ours, or one of another tenant. */
  async open(text: string, tenant: string): Promise<string | null> {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length <= NONCE_BYTES + TAG_BYTES) return null;
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, await this.#sharedKey(), nonce).setAAD(Buffer.from(tenant));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const opened = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([opened, decipher.final()]).toString('utf8');
    } catch {
      return null;
    }
  }

  async #sharedKey(): Promise<Buffer> {
    if (this.#key) return this.#key;
    const name = this.#keys.cursorSeal();
    await this.#redis.set(name, randomBytes(32).toString('base64'), 'NX');
    this.#key = Buffer.from((await this.#redis.get(name)) as string, 'base64');
    return this.#key;
  }
}
