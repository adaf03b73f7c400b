/**
 * What was done by whom: each call that changes the fleet's models, keys or tenants, in a stream of bounded length and in
 * the log. The line in the log comes first, so that a Redis that is away cannot hide a call.
 */
import { AuditEntry } from '@remuda/schemas';
import type { Logger } from '../observability/logger.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';

/** About that many entries are kept: the trim of the stream is by whole blocks. */
const KEPT = 10_000;

export interface AuditLogOptions {
  redis: Redis;
  keys: Keys;
  logger: Logger;
}

/** What is known before Redis gives it its place. */
export type AuditRecord = Omit<AuditEntry, 'id'>;

export class AuditLog {
  readonly #options: AuditLogOptions;

  constructor(options: AuditLogOptions) {
    this.#options = options;
  }

  async write(record: AuditRecord): Promise<void> {
    const { redis, keys, logger } = this.#options;
    const { at, ...fields } = record;
    logger.info({ event: 'audit', ...fields }, 'audit');
    await redis.xadd(keys.audit(), 'MAXLEN', '~', KEPT, '*', 'entry', JSON.stringify(record));
  }

  /** Newest first. @param before id of an entry: only what is older */
  async list(limit: number, before?: string): Promise<AuditEntry[]> {
    const { redis, keys } = this.#options;
    // Nothing is before the first place that a stream has; Redis calls an open end there an error.
    if (before !== undefined && /^0+-0+$/.test(before)) return [];
    const from = before === undefined ? '+' : `(${before}`;
    const entries = await redis.xrevrange(keys.audit(), from, '-', 'COUNT', limit);
    return entries.map(([id, [, text]]) => AuditEntry.parse({ id, ...JSON.parse(text as string) }));
  }
}
