/**
 * How full Redis is: asked at most once a second (four times while it is too full), and what this process has stored
 * since the last answer counted on top, so that a burst of large inputs is stopped as well.
 */
import type { Clock } from '../lifecycle/clock.js';
import type { Redis } from '../store/redis.js';
import { memoryUse } from '../store/redis-memory.js';

const FRESH_MS = 1_000;
const FULL_FRESH_MS = 250;
/** Above this share of maxmemory nothing is accepted: acknowledgements and results need the rest. */
export const FULL_SHARE = 0.8;
/** Measured: what a stored input takes in Redis, for each of its bytes. */
const BYTES_PER_BYTE = 1.3;

export class MemoryWatch {
  #askedAt = 0;
  #used = 0;
  /** 0: no limit is set. */
  #most = 0;
  #since = 0;

  constructor(
    private readonly redis: Redis,
    private readonly clock: Clock,
  ) {}

  /** Share of maxmemory that is used, as last known; 0 where Redis has no limit. Asks anew in the background. */
  share(): number {
    const share = this.#most === 0 ? 0 : (this.#used + this.#since * BYTES_PER_BYTE) / this.#most;
    const now = this.clock.now();
    if (now - this.#askedAt >= (share >= FULL_SHARE ? FULL_FRESH_MS : FRESH_MS)) {
      this.#askedAt = now;
      this.#ask().catch(() => {});
    }
    return share;
  }

  /** Bytes of inputs that are about to be stored. */
  count(bytes: number): void {
    this.#since += bytes;
  }

  async #ask(): Promise<void> {
    const before = this.#since;
    const { used, most } = await memoryUse(this.redis);
    this.#used = used;
    this.#most = most;
    // What was sent before the question is in the answer.
    this.#since -= before;
  }
}
