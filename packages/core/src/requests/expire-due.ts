/**
 * Ends requests whose deadline has passed where no worker looks: their queue has none, or none that is alive. An index
 * by deadline says which, so the cost is that of what is late, not of what is open. Redis decides, by its own clock.
 *
 * Part of the sweeper (sweep-requests.ts). Who asks for such a request meanwhile ends it by asking (get-request.ts).
 */
import type { LifeLog } from '../observability/events.js';
import type { Metrics } from '../observability/metrics.js';
import type { JobQueues } from '../queue/job-queue.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import { partitionOfRecord } from './submit-request.js';

export interface ExpireDeps {
  store: RequestStore;
  queues: JobQueues;
  metrics: Pick<Metrics, 'requests'>;
  life: LifeLog;
}

/** Of one call of Redis; a turn makes as many as are needed, up to the bound. */
const PAGE = 500;
const PAGES_PER_TURN = 20;

/** Ends what is late of one shard, 10,000 at most. @param onExpired told of each */
export async function expireDue(shard: number, deps: ExpireDeps, onExpired: () => void): Promise<void> {
  for (let pages = 0; pages < PAGES_PER_TURN; pages++) {
    const ids = await deps.store.listDue(shard, PAGE);
    const records = await deps.store.read(ids);
    const ended = await Promise.all(
      ids.map((id, i) => expireRequest({ requestId: id, record: records[i] ?? null }, deps)),
    );
    for (const done of ended) if (done) onExpired();
    if (ids.length < PAGE) return;
  }
}

/** Ends one if it is late, takes its job off the queue, and tells log and metrics. Returns whether it was. */
export async function expireRequest(
  { requestId, record }: { requestId: string; record: StoredRecord | null },
  { store, queues, metrics, life }: ExpireDeps,
): Promise<boolean> {
  const expired = await store.expire(requestId);
  if (!expired || !record) return false;
  const { model, route, traceId, shadowOf } = record.document;
  if (shadowOf === undefined) metrics.requests.inc({ model, lane: route.lane, outcome: 'expired' });
  life.expired({ trace_id: traceId, request_id: requestId, at: 'sweep' });
  // A worker that has it finds out by itself; its job is not ours to remove.
  if (expired.before === 'queued') await queues.of(partitionOfRecord(record)).remove(requestId);
  return true;
}

/** Whether one of its deadlines seems to have passed, by this host's reckoning: Redis is asked before anything is done. */
export function seemsLate(record: StoredRecord, now: number): boolean {
  const { deadline, finishDeadline, status } = record;
  if (finishDeadline !== 0 && finishDeadline <= now) return true;
  return status === 'queued' && deadline !== 0 && deadline <= now;
}
