/** What every part gets, and the two ways in which Remuda's side is driven: a backlog that is drained, a live load. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { type LoadBody, sendLoad } from '../load/load-job.js';
import type { Ledger } from '../rig/ledger.js';
import type { Rig, RigOptions, WorkerOptions } from '../rig/rig.js';
import { type ResourceUse, startMeter } from './meter.js';

export interface PartContext {
  /** Fewer requests and a single round: to see that it works, not to be quoted. */
  quick: boolean;
  /** As many rows as the targets speak of, where the usual form has fewer: bulk. */
  full: boolean;
  /** How often both sides are measured. */
  rounds: number;
  ledger: Ledger;
  rig: Pick<RigOptions, 'logLevel' | 'redisOver'>;
  /** A line for people, on standard error. */
  log(line: string): void;
}

export interface Workload {
  model: string;
  body: LoadBody;
  count: number;
}

export interface Measured extends ResourceUse {
  rowsPerS: number;
}

/** Connections of a load generator that fills a backlog or keeps the API busy. */
export const CONNECTIONS = 24;
/** Share of the workload that new processes run before anything is timed: V8 compiles for thousands of calls. */
const WARMUP_SHARE = 0.5;
const LOOK_EVERY_MS = 20;
const STUCK_AFTER_MS = 120_000;

/**
 * A backlog is built while the queue is held; then it is let go, and the clock runs from the first pick-up to the last
 * outcome. Workers are started, and warmed with a tenth of the workload, where none run yet.
 */
export async function measureBacklog(
  rig: Rig,
  ledger: Ledger,
  workload: Workload,
  workers: readonly WorkerOptions[] = [{}],
): Promise<Measured> {
  if (rig.workerUrls.length === 0) await warmUp(rig, ledger, workload, workers);
  await rig.hold(workload.model, true);
  const { ids } = await sendLoad(loadJob(rig, workload));
  await rig.untilRedisRests();
  const stopMeter = await startMeter(rig);
  await rig.hold(workload.model, false);
  await untilNoneOpen(rig);
  const use = await stopMeter(workload.count);
  const records = await settle(rig, ledger, ids);
  const startedAt = Math.min(...records.map((record) => record.startedAt ?? Number.POSITIVE_INFINITY));
  return { ...use, rowsPerS: rateOf(records, startedAt) };
}

/** A client sends over HTTP while the worker drains; the clock runs from the first call to the last outcome. */
export async function measureLive(
  rig: Rig,
  ledger: Ledger,
  workload: Workload,
  connections = CONNECTIONS,
): Promise<Measured> {
  if (rig.workerUrls.length === 0) await warmUp(rig, ledger, workload, [{}]);
  const stopMeter = await startMeter(rig);
  const { ids, startedAt, cpuMicros } = await sendLoad(loadJob(rig, workload, connections));
  await untilNoneOpen(rig);
  const use = await stopMeter(workload.count, cpuMicros);
  const records = await settle(rig, ledger, ids);
  return { ...use, rowsPerS: rateOf(records, startedAt) };
}

async function warmUp(
  rig: Rig,
  ledger: Ledger,
  workload: Workload,
  workers: readonly WorkerOptions[],
): Promise<void> {
  await Promise.all(workers.map((options) => rig.startWorker({ models: [workload.model], ...options })));
  const count = Math.ceil(workload.count * WARMUP_SHARE);
  const { ids } = await sendLoad(loadJob(rig, { ...workload, count }));
  await untilNoneOpen(rig);
  await settle(rig, ledger, ids);
}

function loadJob(rig: Rig, workload: Workload, connections = CONNECTIONS) {
  return { ...workload, url: rig.apiUrl, connections, waitS: 0, pauseMs: 0 };
}

/** Enters a round into the ledger and clears it away. @throws Error when a request failed: its figure is worth nothing */
async function settle(rig: Rig, ledger: Ledger, ids: readonly string[]): Promise<StoredRecord[]> {
  const records = await ledger.check(rig, ids);
  await ledger.countFenced(rig);
  await rig.forgetRequests();
  const bad = records.find((record) => record.status !== 'succeeded');
  if (bad) throw new Error(`request ${bad.requestId} ended as ${bad.status}: ${JSON.stringify(bad.error)}`);
  return records;
}

function rateOf(records: readonly StoredRecord[], startedAt: number): number {
  const endedAt = Math.max(...records.map((record) => record.finishedAt ?? 0));
  const rows = records.reduce((sum, record) => sum + record.document.rows, 0);
  return rows / ((endedAt - startedAt) / 1000);
}

export async function untilNoneOpen(rig: Rig): Promise<void> {
  let last = -1;
  let changedAt = Date.now();
  for (;;) {
    const open = await rig.store.countOpen();
    if (open === 0) return;
    if (open !== last) {
      last = open;
      changedAt = Date.now();
    } else if (Date.now() - changedAt > STUCK_AFTER_MS) {
      throw new Error(`${open} requests are open and nothing has ended for ${STUCK_AFTER_MS / 1000} s`);
    }
    await sleep(LOOK_EVERY_MS);
  }
}
