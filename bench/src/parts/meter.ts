/** What a stretch of work costs: CPU of each process, rows of a native run, and how much strangers took meanwhile. */
import { cpus } from 'node:os';
import { runsOf } from '../rig/metrics-text.js';
import { machineMicros } from '../rig/proc-stat.js';
import { type CpuUse, cpuBetween, type Rig } from '../rig/rig.js';

export interface ResourceUse {
  /** Milliseconds of CPU for each request. */
  cpuMs: CpuUse & { total: number };
  /** Rows of a native run. */
  batchMean: number;
  /** Share of the machine that processes took which are no part of the measurement, 0 to 1. */
  othersShare: number;
}

/** @returns ends the stretch; takes the number of requests, and what a client of ours used in microseconds */
export async function startMeter(
  rig: Rig,
): Promise<(requests: number, clientMicros?: number) => Promise<ResourceUse>> {
  const runsBefore = await runsOf(rig.workerUrls);
  const cpuBefore = rig.cpu();
  const machineBefore = machineMicros();
  const begun = performance.now();
  return async (requests, clientMicros = 0) => {
    const used = cpuBetween(cpuBefore, rig.cpu());
    const others = machineMicros() - machineBefore - used.total - clientMicros;
    const available = (performance.now() - begun) * 1000 * cpus().length;
    const { rows, runs } = await runsOf(rig.workerUrls);
    const runsOfStretch = runs - runsBefore.runs;
    return {
      cpuMs: perRequest(used, requests),
      batchMean: runsOfStretch === 0 ? 0 : (rows - runsBefore.rows) / runsOfStretch,
      othersShare: Math.min(1, Math.max(0, others / available)),
    };
  };
}

function perRequest(used: CpuUse & { total: number }, requests: number): CpuUse & { total: number } {
  const ms = (micros: number): number => micros / 1000 / requests;
  const { api, worker, runner, redis, total } = used;
  return { api: ms(api), worker: ms(worker), runner: ms(runner), redis: ms(redis), total: ms(total) };
}

export function showUse({ cpuMs: { api, worker, runner, redis, total }, othersShare }: ResourceUse): string {
  const ms = (value: number): string => value.toFixed(3);
  const others = othersShare > 0.05 ? `; others took ${Math.round(othersShare * 100)} % of the machine` : '';
  return `CPU ms/request: API ${ms(api)} worker ${ms(worker)} runner ${ms(runner)} Redis ${ms(redis)} = ${ms(total)}${others}`;
}
