/** Faults of worker, runner and API processes. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultName } from '../plan/fault-kinds.js';
import type { Fault } from '../plan/plan.js';
import { type Site, type Strike, struckSlot } from './site.js';

const kill: Strike = (fault, site) =>
  replaced(fault, site, async () => {
    await struckSlot(fault, site).kill9();
  });

const terminate: Strike = (fault, site) =>
  replaced(fault, site, async () => {
    await struckSlot(fault, site).terminate();
  });

/** Stops it in one way or another, and starts it again. */
async function replaced(fault: Fault, site: Site, end: () => Promise<void>): Promise<void> {
  const slot = struckSlot(fault, site);
  await site.calm.hurting([slot.name], async () => {
    await end();
    await site.fleet.restart(slot);
  });
}

async function standStill(fault: Fault, site: Site): Promise<void> {
  const slot = struckSlot(fault, site);
  await site.calm.hurting([slot.name], async () => {
    slot.freeze();
    await sleep(fault.locks * site.lockMs);
    slot.thaw();
  });
}

async function killRunners(fault: Fault, site: Site): Promise<void> {
  const slot = struckSlot(fault, site);
  await site.calm.hurting([slot.name], async () => {
    for (const pid of slot.runnerPids) signal(pid, 'SIGKILL');
    // Its successor loads the models again.
    await sleep(site.lockMs / 4);
  });
}

async function stopRunners(fault: Fault, site: Site): Promise<void> {
  const slot = struckSlot(fault, site);
  const runners = slot.runnerPids;
  await site.calm.hurting([slot.name], async () => {
    for (const pid of runners) signal(pid, 'SIGSTOP');
    await sleep(fault.locks * site.lockMs);
    for (const pid of runners) signal(pid, 'SIGCONT');
  });
}

/** A worker that comes back on a host whose clock is off; the next offset replaces this one. */
async function shiftClock(fault: Fault, site: Site): Promise<void> {
  const slot = struckSlot(fault, site);
  slot.clockOffsetMs = Number(fault.variant);
  await terminate(fault, site);
}

/** A process of the older build is replaced; workers come before APIs, as an upgrade should go. */
async function upgrade(fault: Fault, site: Site): Promise<void> {
  site.fleet.upgrade(struckSlot(fault, site));
  await terminate(fault, site);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

export const PROCESS_FAULTS: Partial<Record<FaultName, Strike>> = {
  worker_kill: kill,
  worker_term: terminate,
  worker_stop_short: standStill,
  worker_stop_long: standStill,
  runner_kill: killRunners,
  runner_stop: stopRunners,
  api_kill: kill,
  api_term: terminate,
  api_stop: standStill,
  clock_offset: shiftClock,
  upgrade,
};
