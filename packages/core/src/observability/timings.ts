/**
 * The times of one batch, measured once and used three times: in the ItemMetrics that each result carries (written by
 * the runner), in the log lines and in the histograms (both by the worker, when the runner has answered).
 */
import type { ItemMetrics } from '@remuda/schemas';
import type { BatchUnit, UnitOutcome } from '../inference/runner-protocol.js';
import { isShadowId } from '../models/shadow-id.js';
import type { VersionObserver } from '../models/version-stats.js';
import type { LifeLog } from './events.js';
import type { Metrics } from './metrics.js';

/** Where a batch ran. */
export interface BatchPlace {
  batchId: string;
  workerId: string;
  /** cpu, cuda:0, … */
  device: string;
}

/** What the runner knows about the run that held an item. */
export interface RunFacts extends BatchPlace {
  provider: string;
  rows: number;
  /** Unix milliseconds. */
  closedAt: number;
  runMs: number;
}

/** The metrics of one item. @param writtenAt Unix milliseconds */
export function itemMetrics(run: RunFacts, acceptedAt: number, writtenAt: number): ItemMetrics {
  return {
    queue_ms: Math.max(0, run.closedAt - acceptedAt),
    run_ms: hundredths(run.runMs),
    total_ms: Math.max(0, writtenAt - acceptedAt),
    batch_rows: run.rows,
    batch_id: run.batchId,
    worker_id: run.workerId,
    device: run.device,
    provider: run.provider,
  };
}

/** What the worker knows about a batch. */
export interface BatchFacts extends BatchPlace {
  model: string;
  version: string;
  deviceClass: string;
  units: readonly BatchUnit[];
  /** Lane of each unit: rows of all lanes may share a batch. */
  lanes: readonly string[];
  /** Unix milliseconds. */
  closedAt: number;
}

/** What the runner answered (the times of `batch_done`), and when. */
export interface BatchTimes {
  fetchMs: number;
  runMs: number;
  writeMs: number;
  outcomes: readonly UnitOutcome[];
  /** Each native run of the batch. */
  runs: readonly { rows: number; seconds: number }[];
  /** Unix milliseconds. */
  doneAt: number;
}

export interface Observers {
  metrics: Metrics;
  life: LifeLog;
  /** Counts versions while traffic is split. */
  versions?: VersionObserver;
}

/** A batch has been closed: the waits of its units end. */
export function observeClosed(batch: BatchFacts, { metrics, life }: Observers): void {
  const { model, version, deviceClass: device_class, lanes, units, closedAt } = batch;
  units.forEach((unit, index) => {
    if (isShadowId(unit.requestId)) return;
    const partition = { model, device_class, lane: lanes[index] as string };
    metrics.queueWait.observe(partition, Math.max(0, closedAt - unit.acceptedAt) / 1000);
  });
  if (!life.enabled) return;
  const request_ids = unique(units.map((unit) => unit.requestId));
  const { batchId: batch_id, workerId: worker_id, device } = batch;
  life.batched({
    batch_id,
    trace_ids: traceIds(units),
    request_ids,
    model,
    version,
    rows: rowsOf(units),
    worker_id,
    device,
  });
}

/** A batch has come back: its run, its rows, what became of its units. */
export function observeDone(
  batch: BatchFacts,
  times: BatchTimes,
  { metrics, life, versions }: Observers,
): void {
  const { model, version, deviceClass: device_class } = batch;
  const place = { model, version, device_class };
  const failed = times.outcomes.some((outcome) => outcome.kind === 'run_failed');
  const rows = rowsOf(batch.units);
  metrics.batches.inc({ ...place, outcome: failed ? 'failed' : 'ok' });
  metrics.rows.inc(place, rows);
  metrics.fetchSeconds.observe(place, times.fetchMs / 1000);
  for (const run of times.runs) {
    metrics.batchRows.observe(place, run.rows);
    metrics.runSeconds.observe(place, run.seconds);
  }
  metrics.writeSeconds.observe(place, times.writeMs / 1000);
  observeUnits(batch, times, metrics);
  versions?.ran(model, version, batch.units, times.runs);
  if (life.enabled) logDone(batch, times, rows, life);
}

function observeUnits({ model, lanes, units }: BatchFacts, times: BatchTimes, metrics: Metrics): void {
  times.outcomes.forEach((outcome, index) => {
    const unit = units[index];
    if (unit && outcome.kind === 'written' && !isShadowId(unit.requestId)) {
      const lane = lanes[index] as string;
      metrics.requestSeconds.observe({ model, lane }, Math.max(0, times.doneAt - unit.acceptedAt) / 1000);
    }
    if (outcome.kind === 'dropped' && outcome.reason !== 'expired') {
      metrics.fencedWrites.inc({ model, reason: outcome.reason });
    }
  });
}

function logDone(batch: BatchFacts, times: BatchTimes, rows: number, life: LifeLog): void {
  const ids = { batch_id: batch.batchId, trace_ids: traceIds(batch.units) };
  life.run({ ...ids, rows, run_ms: hundredths(times.runMs) });
  const written = times.outcomes.filter((outcome) => outcome.kind === 'written');
  const succeeded = written.filter((outcome) => outcome.ok).length;
  life.written({
    ...ids,
    succeeded,
    failed: written.length - succeeded,
    dropped: times.outcomes.filter((outcome) => outcome.kind === 'dropped').length,
    write_ms: hundredths(times.writeMs),
  });
}

function rowsOf(units: readonly BatchUnit[]): number {
  return units.reduce((sum, unit) => sum + unit.rows, 0);
}

function traceIds(units: readonly BatchUnit[]): string[] {
  return unique(units.map((unit) => unit.traceId));
}

function unique(ids: string[]): string[] {
  return [...new Set(ids)];
}

/** Two places: clocks are no better, and the text stays short. */
function hundredths(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}
