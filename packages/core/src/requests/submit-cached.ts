/**
 * Submits a request of a model with a result cache: answered at once where the cache has its answer, without a job
 * where an identical request is under way, else as any other. Each has a record and inputs of its own in any case, so
 * whatever becomes of the other request, it can be run.
 */
import type { Metrics } from '../observability/metrics.js';
import type { CacheStore, Place } from '../store/cache-store.js';
import type { RequestStore } from '../store/request-store.js';
import { type Coalescing, placeOf } from './coalescing.js';
import { presentRequest, recordOf } from './present-request.js';
import type { Prepared, Submitted } from './submit-request.js';

export interface SubmitCachedDeps {
  store: RequestStore;
  cache: CacheStore;
  coalescing: Coalescing;
  metrics: Pick<Metrics, 'resultCache'>;
  onError(error: Error): void;
}

/** What the submitter does with a request that is prepared. All of them throw where nothing is accepted. */
export interface Steps {
  acceptAndEnqueue(prepared: Prepared): Promise<Submitted>;
  /** Accepts it without a job; where its id was known, the answer to the caller. */
  acceptOnly(prepared: Prepared): Promise<Submitted | 'accepted'>;
  /** Tells log and metrics, and presents it. */
  accepted(prepared: Prepared): Submitted;
}

export async function submitCached(
  prepared: Prepared,
  steps: Steps,
  deps: SubmitCachedDeps,
): Promise<Submitted> {
  const { acceptance } = prepared;
  const place = placeOf(acceptance) as Place;
  const look = await deps.cache.look(place);
  const outcome = { hit: 'hit', follow: 'coalesced', lead: 'miss' }[look.kind];
  deps.metrics.resultCache.inc({ model: place.model, outcome });
  if (look.kind === 'lead') return lead(prepared, place, steps, deps);
  const follows = look.kind === 'hit' ? look.from : look.leader;
  const follower: Prepared = { ...prepared, acceptance: { ...acceptance, follows } };
  const known = await steps.acceptOnly(follower);
  if (known !== 'accepted') return known;
  const submitted = steps.accepted(follower);
  const record = recordOf(follower.acceptance);
  const { coalescing, onError } = deps;
  const told =
    look.kind === 'hit'
      ? coalescing.answer(record, look.frames, 'cache')
      : // Its leader may have ended before it was there to be told.
        coalescing.settle(record);
  // It is accepted: should this fail, the sweeper does it.
  const changed = await told.catch((error: Error) => onError(error));
  return (changed && (await asItIsNow(record.requestId, deps))) || submitted;
}

async function lead(
  prepared: Prepared,
  place: Place,
  steps: Steps,
  deps: SubmitCachedDeps,
): Promise<Submitted> {
  const { cache, onError } = deps;
  const leader: Prepared = { ...prepared, acceptance: { ...prepared.acceptance, after: true } };
  try {
    const submitted = await steps.acceptAndEnqueue(leader);
    // An id that was known need not lead, and may have ended long ago; who follows it finds that out.
    if (submitted.known && submitted.record.finished_at !== null) await cache.leave(place).catch(onError);
    return submitted;
  } catch (error) {
    // Those who follow it already are found by the sweeper.
    await cache.leave(place).catch(onError);
    throw error;
  }
}

async function asItIsNow(requestId: string, { store }: SubmitCachedDeps): Promise<Submitted | undefined> {
  const [record] = await store.read([requestId]).catch(() => []);
  return record ? { record: presentRequest(record, Date.now()), known: false } : undefined;
}
