/**
 * The life of a job in a worker, as named steps. File 5 of the tour.
 *
 *   take up → get its version, loaded where need be → one entry for each item into the batcher →
 *   await each item's own outcome → acknowledge, or put back
 *
 * The promise of the job resolves only when every item has an outcome in the store, so an acknowledged job is a
 * request that has ended. What cannot be run here and now is put back, never dropped.
 *
 * Next: core/batching/batcher.ts.
 */
import type { Unsettled } from '@remuda/core/batching/batcher';
import type { UnitEnd } from '@remuda/core/inference/run-batch';
import type { BatchUnit } from '@remuda/core/inference/runner-protocol';
import type { LifeLog } from '@remuda/core/observability/events';
import type { JobTicket, TakenJob } from '@remuda/core/queue/job-queue';
import { type Partition, queueName } from '@remuda/core/queue/partitions';
import { TryAgainError } from '@remuda/core/queue/retry-policy';
import { pauseMs, ruleFor } from '@remuda/core/retries/error-classes';
import { DEFAULT_TENANT, type HarnessConfig, type ItemError } from '@remuda/schemas';
import type { Acquired, WantedVersion } from './acquire-version.js';
import type { Lease } from './leases.js';
import type { ServedItem } from './served-model.js';

export interface ProcessJobDeps {
  workerId: string;
  /** Gets the job its version, loading it where that may be. */
  acquire(wanted: WantedVersion): Promise<Acquired>;
  /** Tells all workers that a job waits in the queue. */
  ring(partition: Partition): void;
  life: LifeLog;
  now(): number;
  /** Ends the request of a ticket, whose last attempt is spent. False: it is gone, whoever has its id now. */
  giveUp(ticket: JobTicket, error: ItemError): Promise<boolean>;
  /** The ticket of the request that has the id of a job whose own request is gone; null: none. */
  acceptedAnew(ticket: JobTicket, partition: Partition): Promise<JobTicket | null>;
}

export async function processJob(job: TakenJob, deps: ProcessJobDeps): Promise<void> {
  const { partition, ticket, token } = job;
  const returns = token - ticket.tokenBase - 1;
  const acquired = await deps.acquire({ partition, version: ticket.version, returns });
  switch (acquired.kind) {
    case 'leased':
      return run(job, acquired.lease, deps);
    case 'never':
      return giveUp(job, acquired.error, deps);
    case 'later': {
      const handedBack = await job.handBack(acquired.afterMs);
      if (acquired.ring) deps.ring(partition);
      throw handedBack;
    }
  }
}

async function run(job: TakenJob, { served, release }: Lease, deps: ProcessJobDeps): Promise<void> {
  try {
    logPickUp(job, deps);
    const submit = job.partition.lane === 'chunks' ? served.submitChunk : served.submit;
    const ends = await Promise.all(itemsOf(job, deps.now()).map((item) => submit.call(served, item)));
    if (ends.includes('refused') && !ends.includes('drained'))
      throw await job.handBack(refusedDelay(served.retryAfterMs));
    await settle(job, ends, served.source.config, deps);
  } finally {
    release();
  }
}

/** At least as long as its breaker is open, and jobs do not return all at once; other workers may take them meanwhile. */
function refusedDelay(retryAfterMs: number): number {
  return Math.round(Math.max(100, retryAfterMs) * (1 + Math.random() / 4));
}

function logPickUp({ ticket, partition, token }: TakenJob, { life, workerId }: ProcessJobDeps): void {
  if (!life.enabled) return;
  life.picked_up({
    trace_id: ticket.traceId,
    request_id: ticket.requestId,
    worker_id: workerId,
    queue: queueName(partition),
    attempt: token,
  });
}

/** One entry for each item of the request. */
function itemsOf(job: TakenJob, now: number): ServedItem[] {
  const { ticket, partition } = job;
  const items: ServedItem[] = [];
  for (const [count, rows, group] of ticket.units) {
    for (let i = 0; i < count; i++) {
      items.push({
        rows,
        // A job whose workers keep dying runs alone, away from others.
        group: job.suspect ? `${group}:${ticket.requestId}` : group,
        laneRank: partition.lane === 'interactive' ? 0 : 1,
        tenant: ticket.tenant ?? DEFAULT_TENANT,
        weight: ticket.weight ?? 1,
        priority: ticket.priority,
        deadline: ticket.deadline,
        finishDeadline: ticket.finishDeadline ?? 0,
        acceptedAt: ticket.acceptedAt,
        arrivedAt: now,
        lane: partition.lane,
        failures: job.failures,
        unit: unitOf(ticket, job.token, items.length, rows),
      });
    }
  }
  return items;
}

function unitOf(ticket: JobTicket, token: number, item: number, rows: number): BatchUnit {
  const { requestId, nonce, inline, traceId, acceptedAt } = ticket;
  return { requestId, token, item, rows, nonce, inline, traceId, acceptedAt };
}

/** Returns when the job may be acknowledged; throws what makes BullMQ put it back. */
async function settle(
  job: TakenJob,
  ends: (UnitEnd | Unsettled)[],
  config: HarnessConfig,
  deps: ProcessJobDeps,
): Promise<void> {
  if (ends.includes('drained')) {
    deps.life.handed_back({
      trace_id: job.ticket.traceId,
      request_id: job.ticket.requestId,
      worker_id: deps.workerId,
    });
    throw await job.handBack();
  }
  if (ends.some(isGone)) return passOn(job, deps);
  const errors = ends.flatMap((end) =>
    typeof end === 'object' && end.kind === 'unavailable' ? [end.error] : [],
  );
  const [first] = errors;
  if (!first) return;
  const failures = job.failures + 1;
  const spent = errors.find((error) => failures >= ruleFor(error.code, config).attempts);
  if (spent) return giveUp(job, spent, deps);
  throw tryAgain(job, first, pauseMs(ruleFor(first.code, config), failures), deps);
}

async function giveUp(job: TakenJob, error: ItemError, deps: ProcessJobDeps): Promise<void> {
  if (!(await deps.giveUp(job.ticket, error))) await passOn(job, deps);
}

/** Its request is gone: the job goes to the one that has its id now, where there is one. */
async function passOn(job: TakenJob, deps: ProcessJobDeps): Promise<void> {
  const next = await deps.acceptedAnew(job.ticket, job.partition);
  if (next) throw await job.passOn(next);
}

/** The request was taken back: nobody has been told that it is accepted. */
function isGone(end: UnitEnd | Unsettled): boolean {
  return typeof end === 'object' && end.kind === 'dropped' && end.reason === 'record_missing';
}

function tryAgain(job: TakenJob, error: ItemError, afterMs: number, { life }: ProcessJobDeps): Error {
  life.retried({
    trace_id: job.ticket.traceId,
    request_id: job.ticket.requestId,
    attempt: job.token,
    code: error.code,
    delay_ms: afterMs,
  });
  return new TryAgainError(`${error.code}: ${error.message}`, afterMs);
}
