/**
 * Part of step one of a submission: a deadline that is past, or that cannot be met, is refused before anything is
 * stored; one that may be missed is accepted with a notice. Costs nothing where a request has no deadline, and asks
 * Redis only before it refuses one: first that the request is not known already, then how many are really before it.
 */
import type { RequestMetadata, Route } from '@remuda/schemas';
import { deadlinesOf, pastDeadline } from '../deadlines/deadlines-of.js';
import { lateNotice, predict, unreachable } from '../deadlines/reachable.js';
import type { RemudaError } from '../errors.js';
import type { FleetView } from '../fleet/fleet-view.js';
import { HEARTBEAT_EVERY_MS } from '../fleet/heartbeats.js';
import type { JobQueues } from '../queue/job-queue.js';
import type { Partition } from '../queue/partitions.js';
import type { QueueDepths } from '../queue/queue-depths.js';
import type { RowMeans } from './row-means.js';
import type { Submission } from './submission.js';

export interface DeadlineDeps {
  fleet: Pick<FleetView, 'classFacts'>;
  depths: Pick<QueueDepths, 'peek'>;
  queues: Pick<JobQueues, 'of'>;
  rowMeans: RowMeans;
  /** Whether a request of that id was accepted before: then its deadlines were checked then. */
  isKnown(requestId: string): Promise<boolean>;
  /** False: what cannot be met is accepted, too. */
  refuseHopeless: boolean;
  now(): number;
}

export interface DeadlineQuestion {
  submission: Submission;
  route: Route;
  partition: Partition;
  version: string;
}

/**
 * The notice that goes with it, or undefined.
 * @throws RemudaError invalid_request where a deadline is past, deadline_unreachable where it cannot be met
 */
export async function checkDeadlines(
  question: DeadlineQuestion,
  deps: DeadlineDeps,
): Promise<string | undefined> {
  const { options, path, reserved } = question.submission;
  const { metadata, request_id: id = reserved?.requestId } = options;
  if (!metadata || !hasDeadline(metadata)) return undefined;
  const now = deps.now();
  const refusal = pastDeadline(metadata, now, path) ?? (await hopeless(question, metadata, now, deps));
  if (refusal && !(id !== undefined && (await deps.isKnown(id)))) throw refusal;
  return lateNotice(predict(question.route), deadlinesOf(metadata, now), now);
}

function hasDeadline({ timeout_ms, start_by, finish_timeout_ms, finish_by }: RequestMetadata): boolean {
  return (timeout_ms ?? start_by ?? finish_timeout_ms ?? finish_by) !== undefined;
}

/** First by all that waits, which is known; only where that says no, by what waits before it, which Redis is asked. */
async function hopeless(
  { submission: { tenant }, route, partition, version }: DeadlineQuestion,
  metadata: RequestMetadata,
  now: number,
  { fleet, depths, queues, rowMeans, refuseHopeless }: DeadlineDeps,
): Promise<RemudaError | undefined> {
  if (!refuseHopeless) return undefined;
  const facts = fleet
    .classFacts(partition.model, version)
    .find(({ deviceClass }) => deviceClass === partition.deviceClass);
  if (!facts) return undefined;
  const deadlines = deadlinesOf(metadata, now);
  const staleness = {
    factsMs: (route.facts_age_ms ?? 0) + HEARTBEAT_EVERY_MS,
    runMs: facts.lastUsedAt === null ? Number.POSITIVE_INFINITY : now - facts.lastUsedAt,
  };
  const refusal = unreachable(predict(route), deadlines, now, staleness);
  if (!refusal) return undefined;
  const before = await queues
    .of(partition)
    .countBefore(tenant, metadata.priority)
    .catch(() => 0);
  const interactive =
    partition.lane === 'bulk' ? depths.peek({ ...partition, lane: 'interactive' }).waiting : 0;
  const mean = rowMeans.of(partition.model) ?? 1;
  const rowsAhead = facts.rowsInHand + Math.round((before + interactive) * mean);
  return unreachable(predict(route, rowsAhead), deadlines, now, staleness);
}
