/** What every part gets, and the two ways in which Remuda's side is driven: a backlog that is drained, a live load. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { type LoadBody, sendLoad } from '../load/load-job.js';
import type { Ledger } from '../rig/ledger.js';
import { batchMeanOf } from '../rig/metrics-text.js';
import { type CpuUse, cpuBetween, type Rig, type RigOptions, type WorkerOptions } from '../rig/rig.js';

export interface PartContext {
  /** Fewer requests and a single round: to see that it works, not to be quoted. */
  quick: boolean;
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

export interface Measured {
  rowsPerS: number;
  batchMean: number;
  /** Milliseconds of CPU for each request. */
  cpuMs: CpuUse & { total: number };
}

/** Connections of a load generator that fills a backlog or keeps the API busy. */
export const CONNECTIONS = 24;
const LOOK_EVERY_MS = 20;
const STUCK_AFTER_MS = 120_000;

/** A backlog is built while no worker runs; workers come up warm; the clock runs from first pick-up to last outcome. */
export async function measureBacklog(
  rig: Rig,
  ledger: Ledger,
  { model, body, count }: Workload,
  workers: readonly WorkerOptions[] = [{}],
): Promise<Measured> {
  const { ids } = await sendLoad({
    url: rig.apiUrl,
    model,
    body,
    count,
    connections: CONNECTIONS,
    waitS: 0,
    pauseMs: 0,
  });
  await rig.hold(model, true);
  await Promise.all(workers.map((options) => rig.startWorker({ models: [model], ...options })));
  const before = rig.cpu();
  await rig.hold(model, false);
  await untilNoneOpen(rig);
  const used = cpuBetween(before, rig.cpu());
  const records = await ledger.check(rig, ids);
  const startedAt = Math.min(...records.map((record) => record.startedAt ?? Number.POSITIVE_INFINITY));
  return finish(rig, ledger, { records, startedAt, used, count });
}

/** A client sends over HTTP while the worker drains; the clock runs from the first call to the last outcome. */
export async function measureLive(
  rig: Rig,
  ledger: Ledger,
  { model, body, count }: Workload,
  connections = CONNECTIONS,
): Promise<Measured> {
  await rig.startWorker({ models: [model] });
  const before = rig.cpu();
  const job = { url: rig.apiUrl, model, body, count, connections, waitS: 0, pauseMs: 0 };
  const { ids, startedAt } = await sendLoad(job);
  await untilNoneOpen(rig);
  const used = cpuBetween(before, rig.cpu());
  const records = await ledger.check(rig, ids);
  return finish(rig, ledger, { records, startedAt, used, count });
}

interface Round {
  records: readonly StoredRecord[];
  startedAt: number;
  used: CpuUse & { total: number };
  count: number;
}

async function finish(
  rig: Rig,
  ledger: Ledger,
  { records, startedAt, used, count }: Round,
): Promise<Measured> {
  requireSuccess(records);
  const endedAt = Math.max(...records.map((record) => record.finishedAt ?? 0));
  const rows = records.reduce((sum, record) => sum + record.document.rows, 0);
  const batchMean = await batchMeanOf(rig.workerUrls);
  await ledger.countFenced(rig);
  if (process.env.REMUDA_BENCH_PROF) process.stderr.write(`${await rig.commandStats()}\n`);
  await rig.stopWorkers();
  await rig.forgetRequests();
  const perRequest = (micros: number): number => micros / 1000 / count;
  return {
    rowsPerS: rows / ((endedAt - startedAt) / 1000),
    batchMean,
    cpuMs: {
      api: perRequest(used.api),
      worker: perRequest(used.worker),
      runner: perRequest(used.runner),
      redis: perRequest(used.redis),
      total: perRequest(used.total),
    },
  };
}

/** A figure over requests that failed would be worth nothing. */
function requireSuccess(records: readonly StoredRecord[]): void {
  const bad = records.find((record) => record.status !== 'succeeded');
  if (bad) throw new Error(`request ${bad.requestId} ended as ${bad.status}: ${JSON.stringify(bad.error)}`);
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

export function showCpu({ cpuMs: { api, worker, runner, redis, total } }: Measured): string {
  const ms = (value: number): string => value.toFixed(3);
  return `CPU ms/request: API ${ms(api)} worker ${ms(worker)} runner ${ms(runner)} Redis ${ms(redis)} = ${ms(total)}`;
}
