/**
 * Cancels a request and says truthfully what that did. The record is ended first: from then on the store refuses
 * every claim and every outcome, whatever a worker is doing. Only then is the job taken off the queue.
 */
import type { CancelAnswer, CancelOutcome } from '@remuda/schemas';
import type { Sight } from '../access/caller.js';
import { itemError, RemudaError } from '../errors.js';
import type { LifeLog } from '../observability/events.js';
import type { Metrics } from '../observability/metrics.js';
import type { JobQueues } from '../queue/job-queue.js';
import type { EndVerdict, RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import { type GetDeps, getRequest } from './get-request.js';
import { iso } from './present-request.js';
import { partitionOfRecord } from './submit-request.js';

export interface CancelDeps extends GetDeps {
  store: RequestStore;
  queues: JobQueues;
  life: LifeLog;
  metrics: Pick<Metrics, 'requests'>;
}

const REASON = itemError('cancelled', 'the request was cancelled');

/** @throws RemudaError request_not_found, request_terminal */
export async function cancelRequest(
  requestId: string,
  deps: CancelDeps,
  sight: Sight = null,
): Promise<CancelAnswer> {
  const record = await getRequest(requestId, deps, sight);
  // The one that was seen, and no other of that id.
  const { nonce } = record;
  const verdict = await deps.guard.run(() => deps.store.end(requestId, 'cancelled', REASON, { nonce }));
  if (!verdict.changed) throw alreadyEnded(requestId, verdict);
  const expires = deps.now() + record.resultTtlMs;
  const removed = await removeJob(record, deps);
  // A request that follows another has no job that a worker could have.
  const outcome = outcomeOf(verdict.before, removed || record.follows !== null);
  tell(record, outcome, deps);
  return { request_id: requestId, outcome, status: 'cancelled', expires_at: iso(expires) };
}

/** The request is cancelled already: trouble here only means that a worker will find the job and drop it. */
function removeJob(record: StoredRecord, { queues, guard }: CancelDeps): Promise<boolean> {
  return guard.run(() => queues.of(partitionOfRecord(record)).remove(record.requestId)).catch(() => false);
}

function outcomeOf(before: 'queued' | 'running', removed: boolean): CancelOutcome {
  if (before === 'running') return 'ran_but_suppressed';
  return removed ? 'removed_from_queue' : 'stopped_before_run';
}

function alreadyEnded(requestId: string, verdict: Extract<EndVerdict, { changed: false }>): RemudaError {
  if (verdict.status === null)
    return new RemudaError('request_not_found', `request ${requestId} has just expired`);
  const message = `request ${requestId} has already ended: ${verdict.status}`;
  return new RemudaError('request_terminal', message, { status: verdict.status });
}

function tell({ requestId, document }: StoredRecord, outcome: CancelOutcome, deps: CancelDeps): void {
  deps.metrics.requests.inc({ model: document.model, lane: document.route.lane, outcome: 'cancelled' });
  deps.life.cancelled({ trace_id: document.traceId, request_id: requestId, outcome });
}
