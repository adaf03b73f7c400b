/**
 * Identical requests run once. The first one leads; those that come while it is under way follow: each has a record, an
 * input, a deadline and a webhook of its own, and no job. When the leader has succeeded each follower gets its outcomes,
 * and the cache keeps them for those to come. A follower whose leader was cancelled, expired or is gone leads the others
 * from then on; where the leader failed, each runs by itself, since what it says of one may not hold for another.
 *
 * Invariant: an open follower is settled by the end of its leader (aftermath.ts), by its own acceptance where the leader
 * had ended by then, or by the sweeper. All three may come at once: the scripts let one of them do it.
 */
import { isTerminal } from '@remuda/schemas';
import type { Clock } from '../lifecycle/clock.js';
import type { LifeLog } from '../observability/events.js';
import type { Metrics } from '../observability/metrics.js';
import { type JobQueues, ticketOf } from '../queue/job-queue.js';
import type { Partition } from '../queue/partitions.js';
import type { CacheStore, Look, Place } from '../store/cache-store.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import type { AftermathHandler } from './aftermath.js';
import { partitionOfRecord } from './submit-request.js';

export interface CoalescingOptions {
  store: RequestStore;
  cache: CacheStore;
  queues: JobQueues;
  metrics: Pick<Metrics, 'requests' | 'requestSeconds' | 'resultCacheBytes' | 'resultCacheEvictions'>;
  life: LifeLog;
  clock: Clock;
  /** Tells workers of a job in a queue that they may not look at. */
  ring(partition: Partition): void;
}

const FOLLOWERS_AT_ONCE = 100;

export class Coalescing implements AftermathHandler {
  readonly #options: CoalescingOptions;

  constructor(options: CoalescingOptions) {
    this.#options = options;
  }

  /** The end of a leader: its answer is kept, and its followers are settled. */
  async handle(record: StoredRecord): Promise<void> {
    const place = placeOf(record);
    if (!place || record.follows !== null) return;
    const { cache, store } = this.#options;
    const frames = record.status === 'succeeded' ? await completeFrames(record, store) : null;
    if (frames && place.ticket.ttlMs > 0) await this.#keep(place, frames);
    await cache.leave(place);
    const { model, requestId } = place;
    for (;;) {
      const ids = await cache.followers(model, requestId, FOLLOWERS_AT_ONCE);
      if (ids.length === 0) return;
      const followers = await store.read(ids);
      // One that has no record yet looks at its leader by itself, as soon as it has one.
      await Promise.all(followers.map((follower) => follower && this.#settleBy(record, frames, follower)));
      await cache.dropFollowers(model, requestId, ids);
    }
  }

  /** Where the answer is at hand it need not be read again. */
  #settleBy(leader: StoredRecord, frames: Buffer[] | null, follower: StoredRecord): Promise<boolean> {
    const same = follower.document.cache?.digest === leader.document.cache?.digest;
    const follows = same && follower.follows === leader.requestId;
    return frames && follows ? this.answer(follower, frames, 'leader') : this.settle(follower);
  }

  /**
   * What a follower can be told now: nothing while its leader is under way.
   * @param stale it has waited so long that a leader without a record will not get one any more, and one that follows
   *   another does not lead
   * @returns whether it has changed
   */
  async settle(follower: StoredRecord, stale = false): Promise<boolean> {
    const place = placeOf(follower);
    if (follower.status !== 'queued' || follower.follows === null || !place) return false;
    const { store } = this.#options;
    const [found] = await store.read([follower.follows]);
    // An id may have been given to other content by its user.
    const leader = found?.document.cache?.digest === place.ticket.digest ? found : null;
    if (leader && !isTerminal(leader.status)) {
      // One that itself follows leads nobody for long; where it goes on, the two may follow each other, for ever.
      const leads = leader.follows === null || leader.status !== 'queued';
      return leads || !stale ? false : this.#lookAgain(follower, place, follower.follows);
    }
    if (leader?.status === 'succeeded') {
      const frames = await completeFrames(leader, store);
      if (frames) return this.answer(follower, frames, 'leader');
    }
    if (leader?.status === 'failed' || leader?.status === 'partial') return this.#runByItself(follower);
    return this.#lookAgain(follower, place, leader || stale ? follower.follows : undefined);
  }

  /** Gives a follower an answer. False: someone else has been quicker. */
  async answer(follower: StoredRecord, frames: readonly Buffer[], by: 'cache' | 'leader'): Promise<boolean> {
    const { store, metrics, life, clock } = this.#options;
    if (!(await store.answer(follower, frames))) return false;
    const { document, requestId, acceptedAt } = follower;
    const { model, route, traceId } = document;
    metrics.requests.inc({ model, lane: route.lane, outcome: 'succeeded' });
    metrics.requestSeconds.observe({ model, lane: route.lane }, (clock.now() - acceptedAt) / 1000);
    if (life.enabled) life.answered({ trace_id: traceId, request_id: requestId, model, by });
    return true;
  }

  async #keep({ model, ticket, requestId }: Place, frames: readonly Buffer[]): Promise<void> {
    const { cache, metrics } = this.#options;
    const { bytes, evicted } = await cache.keep(model, ticket, requestId, frames);
    metrics.resultCacheBytes.set({ model }, bytes);
    if (evicted > 0) metrics.resultCacheEvictions.inc({ model }, evicted);
  }

  /** @param gone a leader that leads no longer */
  async #lookAgain(follower: StoredRecord, place: Place, gone: string | undefined): Promise<boolean> {
    const { cache, store } = this.#options;
    const look: Look = await cache.look(place, gone);
    if (look.kind === 'hit') {
      return (await store.follow(follower, look.from)) && this.answer(follower, look.frames, 'cache');
    }
    if (look.kind === 'lead') {
      const leads = await this.#runByItself(follower);
      // It has ended meanwhile: the next one leads.
      if (!leads) await cache.leave(place);
      return leads;
    }
    if (look.leader === follower.follows || !(await store.follow(follower, look.leader))) return false;
    await this.settle({ ...follower, follows: look.leader });
    return true;
  }

  async #runByItself(follower: StoredRecord): Promise<boolean> {
    const { store, queues, ring } = this.#options;
    if (!(await store.follow(follower, null))) return false;
    const partition = partitionOfRecord(follower);
    await queues.of(partition).add(ticketOf(follower));
    ring(partition);
    return true;
  }
}

/** undefined: neither leads nor follows. */
export function placeOf({
  requestId,
  document,
}: Pick<StoredRecord, 'requestId' | 'document'>): Place | undefined {
  const { cache: ticket, model, route, metadata } = document;
  return ticket && { requestId, model, lane: route.lane, priority: metadata.priority, ticket };
}

/** null: some have gone. */
async function completeFrames(record: StoredRecord, store: RequestStore): Promise<Buffer[] | null> {
  const frames = await store.readOutcomes(record);
  return frames.every((frame) => frame !== null) ? (frames as Buffer[]) : null;
}
