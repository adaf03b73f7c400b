/**
 * What a request that waits can be told: its place in the queue, when it is expected to have ended, and why it waits
 * where it does. One command to Redis; everything else is as last known.
 */
import type { RequestRecord } from '@remuda/schemas';
import { BULK_SHARE } from '../fairness/lane-share.js';
import type { ClassFacts } from '../fleet/class-index.js';
import type { FleetView } from '../fleet/fleet-view.js';
import type { Clock } from '../lifecycle/clock.js';
import type { DeploymentView } from '../models/deployment-view.js';
import type { JobQueues } from '../queue/job-queue.js';
import type { QueueDepths } from '../queue/queue-depths.js';
import type { StoredRecord } from '../store/stored-record.js';
import { iso } from './present-request.js';
import type { RowMeans } from './row-means.js';
import { NO_WORKER, partitionOfRecord } from './submit-request.js';

export interface OutlookDeps {
  queues: Pick<JobQueues, 'of'>;
  fleet: Pick<FleetView, 'classFacts' | 'loadedBy'>;
  deployments: Pick<DeploymentView, 'of'>;
  depths: Pick<QueueDepths, 'peek'>;
  rowMeans: RowMeans;
  clock: Clock;
}

export interface Outlook {
  queue: NonNullable<RequestRecord['queue']>;
  /** Why it waits, where that is not just its turn. */
  notices: string[];
}

/** null: it does not wait. */
export async function queueOutlook(record: StoredRecord, deps: OutlookDeps): Promise<Outlook | null> {
  if (record.status !== 'queued') return null;
  const { document, requestId } = record;
  const { model, version, rows, route } = document;
  const partition = partitionOfRecord(record);
  const facts = deps.fleet
    .classFacts(model, version)
    .find(({ deviceClass }) => deviceClass === partition.deviceClass);
  const place = await deps.queues.of(partition).position(requestId);
  const position = (place ?? 0) + interactiveBefore(route.lane, place ?? 0, partition, deps);
  const rowsAhead =
    place === null ? inHand(facts, rows) : position * meanRows(model, rows, deps) + (facts?.rowsInHand ?? 0);
  const etaMs = expectedMs(facts, rowsAhead, rows);
  return {
    queue: {
      position,
      rows_ahead: Math.round(rowsAhead),
      eta_ms: etaMs,
      eta_at: etaMs === null ? null : iso(deps.clock.now() + etaMs),
    },
    notices: noticesOf(record, facts, heldBack(record, deps)),
  };
}

/** The record with what can be told of it while it waits. */
export function withOutlook(record: RequestRecord, outlook: Outlook | null): RequestRecord {
  if (outlook === null) return record;
  // What was noticed of the fleet at the acceptance may no longer be so: what is so now takes its place.
  const lasting = record.notices.filter((notice) => notice !== NO_WORKER);
  return { ...record, queue: outlook.queue, notices: [...lasting, ...outlook.notices] };
}

/** Bulk rows wait for interactive ones, but for their share; workers may be set to another than the default. */
function interactiveBefore(
  lane: string,
  bulkBefore: number,
  partition: Parameters<QueueDepths['peek']>[0],
  { depths }: OutlookDeps,
): number {
  if (lane !== 'bulk') return 0;
  const { waiting } = depths.peek({ ...partition, lane: 'interactive' });
  return Math.min(waiting, Math.ceil(((bulkBefore + 1) * (1 - BULK_SHARE)) / BULK_SHARE));
}

function meanRows(model: string, rows: number, { rowMeans }: OutlookDeps): number {
  return rowMeans.of(model) ?? rows;
}

/** A worker has it already: of what workers have in hand, half is before it, as far as anyone can say. */
function inHand(facts: ClassFacts | undefined, rows: number): number {
  return Math.max(0, (facts?.rowsInHand ?? 0) - rows) / 2;
}

function expectedMs(facts: ClassFacts | undefined, rowsAhead: number, rows: number): number | null {
  if (!facts || facts.ready === 0 || facts.secondsPerRow === null) return null;
  const own = Math.max(facts.runSeconds ?? 0, rows * (facts.deviceSecondsPerRow ?? 0));
  return Math.round((rowsAhead * facts.secondsPerRow + own) * 1_000);
}

/** Why the desired state keeps its version from being loaded; null: it does not. */
function heldBack({ document }: StoredRecord, { deployments, fleet }: OutlookDeps): string | null {
  const { model, version } = document;
  const { registered, loads, load_mode, updated_by } = deployments.of(model);
  const load = `remuda models load ${model} ${version}`;
  if (!registered) return `${model} was taken out: the request is about to end`;
  if (loads[version] === 'unloaded')
    return `${model} version ${version} was unloaded by name (last change by ${updated_by}): it waits until it is loaded again, as by ${load}`;
  if (loads[version] === 'loaded') return null;
  const copies = fleet.loadedBy(model).filter(({ loaded }) => loaded.version === version);
  const explicit =
    load_mode === null
      ? copies.length > 0 && copies.every(({ loaded }) => loaded.load_mode === 'explicit')
      : load_mode === 'explicit';
  return explicit ? `${model} version ${version} is loaded by name only: it waits for ${load}` : null;
}

function noticesOf({ document }: StoredRecord, facts: ClassFacts | undefined, held: string | null): string[] {
  if (held !== null && !facts?.ready) return [held];
  const { device_class, requested } = document.route;
  const where = `${document.model} version ${document.version} on ${device_class}`;
  const asked = requested === undefined ? '' : ', which the request asks for';
  const orOther = requested === undefined ? ', or for a class that may take over' : '';
  if (!facts || facts.ready + facts.coming + facts.broken === 0)
    return [`no live worker has ${where}${asked}: it waits for one${orOther}`];
  if (facts.ready > 0) return [];
  return [
    facts.coming > 0
      ? `${where} is being loaded: it waits for that`
      : `runs of ${where}${asked} keep failing: it waits until they do not${orOther}`,
  ];
}
