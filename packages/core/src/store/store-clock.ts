/**
 * The clock that all hosts share: that of Redis, as this process knows it. Deadlines are set and compared by it, so a
 * host whose own clock is wrong neither expires a request early nor runs it late. Between two looks it goes on by the
 * monotonic clock of the process, which nobody sets; until the first look it is the host's own.
 *
 * What must be exact to the millisecond asks Redis itself, inside the script (scripts/ending.lua store_now).
 */
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Redis } from './redis.js';

/** Clocks drift by some ten parts in a million: half a millisecond in that time. */
const LOOK_EVERY_MS = 10_000;
/** Until the first answer. */
const FIRST_LOOK_EVERY_MS = 250;
const DRIFT = 100e-6;

interface Look {
  /** Unix milliseconds by Redis, less the monotonic milliseconds of this process. */
  offset: number;
  /** By how much that may be wrong: half the way there and back. */
  error: number;
  /** Monotonic milliseconds. */
  at: number;
}

export interface StoreClockOptions {
  redis: Pick<Redis, 'time'>;
  /** Goes on while nobody sets it, in milliseconds; default: performance.now */
  monotonic?(): number;
  /** Waits, and tells the time until Redis has been asked. */
  host?: Clock;
}

export class StoreClock implements Clock, Service {
  readonly name = 'store-clock';
  readonly #redis: Pick<Redis, 'time'>;
  readonly #monotonic: () => number;
  readonly #host: Clock;
  #cancel: (() => void) | undefined;
  #stopped = true;
  #last: Look | undefined;

  constructor({ redis, monotonic = () => performance.now(), host = systemClock }: StoreClockOptions) {
    this.#redis = redis;
    this.#monotonic = monotonic;
    this.#host = host;
  }

  /** Resolves when Redis has answered, or refused to. */
  async start(): Promise<void> {
    if (!this.#stopped) return;
    this.#stopped = false;
    await this.#turn();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
  }

  /** Unix milliseconds, whole. */
  now(): number {
    if (!this.#last) return this.#host.now();
    return Math.round(this.#monotonic() + this.#last.offset);
  }

  after(ms: number, callback: () => void): () => void {
    return this.#host.after(ms, callback);
  }

  /** By how much the host's own clock is ahead, in milliseconds; null: Redis has not been asked yet. */
  get hostAheadMs(): number | null {
    return this.#last ? this.#host.now() - this.now() : null;
  }

  /** Asks Redis once. A slow answer says little: it is taken only where it is better than what is known, or contradicts it. */
  async look(): Promise<void> {
    const sent = this.#monotonic();
    const [seconds, micros] = await this.#redis.time();
    const at = this.#monotonic();
    const error = (at - sent) / 2;
    const offset = Number(seconds) * 1000 + Number(micros) / 1000 - sent - error;
    const last = this.#last;
    const known = last ? last.error + (at - last.at) * DRIFT : Number.POSITIVE_INFINITY;
    if (!last || error <= known || Math.abs(offset - last.offset) > error + known)
      this.#last = { offset, error, at };
  }

  async #turn(): Promise<void> {
    // A Redis that does not answer is told of by who needs more of it than the time.
    await this.look().catch(() => {});
    if (this.#stopped) return;
    const pause = this.#last ? LOOK_EVERY_MS : FIRST_LOOK_EVERY_MS;
    this.#cancel = this.#host.after(pause, () => void this.#turn());
  }
}
