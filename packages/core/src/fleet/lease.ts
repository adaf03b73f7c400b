/**
 * A role that one process of the fleet has at a time: a key with a time to live and the holder's token in it. It is
 * taken again with every turn; a holder that dies loses it when the time is up. leased-role.ts is what has one.
 *
 * A holder that stood still may believe for a moment that it still has it: what must not happen twice checks the token
 * in the script that writes.
 */
import { randomUUID } from 'node:crypto';
import { callScript, type Redis } from '../store/redis.js';

export interface LeaseOptions {
  redis: Redis;
  key: string;
  /** Time to live: long enough for a slow turn, short enough that a dead holder is soon replaced. */
  ms: number;
}

export class Lease {
  readonly #options: LeaseOptions;
  readonly token = randomUUID();

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  get key(): string {
    return this.#options.key;
  }

  /** Takes or prolongs it, one command. False: another process has it, or Redis is away. */
  async hold(): Promise<boolean> {
    const { redis, key, ms } = this.#options;
    if (redis.status !== 'ready') return false;
    return (await callScript(redis, 'holdLease', [key], [this.token, ms])) === 1;
  }

  /** Gives it back, so that the next one need not wait. Never throws. */
  async release(): Promise<void> {
    const { redis, key } = this.#options;
    if (redis.status !== 'ready') return;
    await callScript(redis, 'releaseLease', [key], [this.token]).catch(() => 0);
  }
}
