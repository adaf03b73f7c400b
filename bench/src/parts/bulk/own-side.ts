/** Remuda's side: a bulk job of a rig, from the call that creates it to the file that is there. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BulkJob, type BulkJobCreateInput, isBulkTerminal } from '@remuda/schemas';
import type { BulkDesk } from '../../rig/bulk-desk.js';
import { type MemoryPeaks, type Role, watchMemory } from '../../rig/memory-watch.js';
import { endedChildrenMicros, machineMicros } from '../../rig/proc-stat.js';
import { type CpuUse, cpuBetween, type Rig } from '../../rig/rig.js';

/** All but the API, which has no part in it. */
export const BULK_ROLES: readonly Role[] = ['worker', 'runner', 'coordinator', 'redis'];

const LOOK_EVERY_MS = 10;

export interface OwnRun {
  job: BulkJob;
  rows: number;
  /** From create to completed. */
  seconds: number;
  /** From the first look that saw it in progress to the first that saw it finish: without start, joining, renaming. */
  scoringSeconds: number;
  /** Native time of all runs. */
  deviceSeconds: number;
  memory: MemoryPeaks;
  /** CPU in microseconds. */
  cpu: CpuUse & { coordinator: number; total: number };
  /** Share of the machine that strangers took, 0 to 1. */
  othersShare: number;
}

/** @throws Error when it does not end well, or a row of it has no answer */
export async function runBulkJob(rig: Rig, wanted: BulkJobCreateInput, cores: number): Promise<OwnRun> {
  const bulk = await rig.openBulk();
  const children = childrenOfWorkers(rig);
  const stopWatch = watchMemory(rig, BULK_ROLES);
  const before = {
    cpu: rig.cpu(),
    coordinator: coordinatorMicros(rig),
    machine: machineMicros(),
    own: process.cpuUsage(),
  };
  const begun = performance.now();
  const job = await bulk.create(wanted);
  const { ended, scoringSeconds } = await untilEnded(bulk, job.id);
  const seconds = (performance.now() - begun) / 1000;
  const used = cpuBetween(before.cpu, rig.cpu());
  const machine = machineMicros() - before.machine;
  await untilOnly(rig, children);
  const coordinator = coordinatorMicros(rig) - before.coordinator;
  const total = used.total + coordinator;
  const others = machine - total - microsOf(process.cpuUsage(before.own));
  return {
    job: ended,
    rows: ended.progress.rows_done,
    ...{ seconds, scoringSeconds, deviceSeconds: ended.progress.device_seconds },
    memory: await stopWatch(),
    cpu: { ...used, coordinator, total },
    othersShare: Math.min(1, Math.max(0, others / (seconds * 1e6 * cores))),
  };
}

/** What this process takes by looking is no stranger's. */
function microsOf({ user, system }: NodeJS.CpuUsage): number {
  return user + system;
}

async function untilEnded(bulk: BulkDesk, id: string): Promise<{ ended: BulkJob; scoringSeconds: number }> {
  let scoringFrom: number | undefined;
  let scoringTo: number | undefined;
  for (;;) {
    const job = await bulk.get(id);
    if (job.status !== 'validating') scoringFrom ??= performance.now();
    if (job.status === 'finalizing' || isBulkTerminal(job.status)) scoringTo ??= performance.now();
    if (isBulkTerminal(job.status)) {
      requireWhole(job);
      return { ended: job, scoringSeconds: ((scoringTo as number) - (scoringFrom as number)) / 1000 };
    }
    if (job.status === 'paused') throw new Error(`the job is paused: ${JSON.stringify(job.reason)}`);
    await sleep(LOOK_EVERY_MS);
  }
}

function requireWhole({ status, reason, progress }: BulkJob): void {
  if (status === 'completed' && progress.rows_failed === 0 && progress.rows_repeated === 0) return;
  throw new Error(`the job is ${status}: ${JSON.stringify({ reason, progress })}`);
}

/** Until the coordinator has ended, soon after its job, and its parent knows what it has used. */
async function untilOnly(rig: Rig, children: readonly number[]): Promise<void> {
  while (childrenOfWorkers(rig).some((pid) => !children.includes(pid))) await sleep(LOOK_EVERY_MS);
}

function childrenOfWorkers(rig: Rig): number[] {
  return [...rig.pids.runner, ...rig.pids.coordinator];
}

/** Of children of the worker that have ended: coordinators, as no runner ends meanwhile. */
function coordinatorMicros(rig: Rig): number {
  return rig.pids.worker.reduce((sum, pid) => sum + endedChildrenMicros(pid), 0);
}
