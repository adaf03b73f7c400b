/**
 * Notices that Redis has lost what this API had answered with 202: a failover to a replica that was behind, or a power
 * cut between two syncs of the append-only file. Nothing else in the fleet can know of such requests. When the
 * connection is back, the ids of the last seconds are looked up; what is not there any more is told and counted. It
 * cannot be put back: its inputs are gone with it.
 */
import type { Clock } from '../lifecycle/clock.js';
import type { Logger } from '../observability/logger.js';
import type { Metrics } from '../observability/metrics.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';

export interface LostAcceptancesOptions {
  /** The connection that requests are accepted over. */
  redis: Redis;
  keys: Keys;
  clock: Clock;
  logger: Pick<Logger, 'error'>;
  metrics: Pick<Metrics, 'lost'>;
}

/** Longer than Redis takes to notice that a master is gone, on top of what a replica may be behind. */
const REMEMBERED_MS = 60_000;
/** At the highest rate that was measured this is some seconds; about 1 MB. */
const MOST = 20_000;
/** Asked of Redis at once. */
const SLICE = 500;
/** Ids that a line of the log names. */
const NAMED = 20;

interface Accepted {
  requestId: string;
  at: number;
}

export class LostAcceptances {
  readonly #options: LostAcceptancesOptions;
  #accepted: Accepted[] = [];
  #first = 0;
  #checking: Promise<void> | undefined;

  constructor(options: LostAcceptancesOptions) {
    this.#options = options;
    options.redis.on('ready', () => void this.check());
  }

  /** It was answered with 202. One that is kept for a shorter time than it is remembered may rightly be gone. */
  note(requestId: string, resultTtlMs: number): void {
    if (resultTtlMs <= REMEMBERED_MS) return;
    this.#accepted.push({ requestId, at: this.#options.clock.now() });
    if (this.#accepted.length - this.#first <= MOST) return;
    this.#first++;
    // Moved rarely, so that noting one stays cheap.
    if (this.#first >= MOST) this.#forget(this.#first);
  }

  /** Looks them up. Never throws: where Redis goes away again, the next connection asks again. */
  async check(): Promise<void> {
    this.#checking ??= this.#look()
      .catch(() => {})
      .finally(() => {
        this.#checking = undefined;
      });
    await this.#checking;
  }

  async #look(): Promise<void> {
    const { redis, keys, clock, logger, metrics } = this.#options;
    const since = clock.now() - REMEMBERED_MS;
    this.#forget(this.#first);
    this.#accepted = this.#accepted.filter(({ at }) => at >= since);
    const lost: string[] = [];
    const looked = [...this.#accepted];
    for (let from = 0; from < looked.length; from += SLICE) {
      const slice = looked.slice(from, from + SLICE);
      const found = await Promise.all(slice.map(({ requestId }) => redis.exists(keys.record(requestId))));
      lost.push(...slice.filter((_, i) => found[i] === 0).map(({ requestId }) => requestId));
    }
    if (lost.length === 0) return;
    const gone = new Set(lost);
    this.#accepted = this.#accepted.filter(({ requestId }) => !gone.has(requestId));
    metrics.lost.inc({}, lost.length);
    logger.error(
      { lost: lost.length, request_ids: lost.slice(0, NAMED) },
      'Redis came back without requests that it had confirmed: they were accepted and are lost',
    );
  }

  #forget(count: number): void {
    this.#accepted.splice(0, count);
    this.#first = 0;
  }
}
