/** What a fault can lay hands on, and the shape of what carries one out. */
import type { ChaosFleet } from '../fleet/chaos-fleet.js';
import type { ProcessSlot } from '../fleet/process-slot.js';
import type { LedgerFile } from '../load/ledger-file.js';
import type { Sinks } from '../load/sinks.js';
import type { Fault } from '../plan/plan.js';
import type { Calm } from '../watch/calm.js';

export interface Site {
  fleet: ChaosFleet;
  calm: Calm;
  lockMs: number;
  ledger: LedgerFile;
  sinks: Sinks;
}

/** Resolves when the disturbance is over and what was ended is there again. */
export type Strike = (fault: Fault, site: Site) => Promise<void>;

/** The worker or API that a fault strikes; of `process` faults, workers come first. */
export function struckSlot({ target, kind }: Fault, { fleet }: Site): ProcessSlot {
  const slots = kind.startsWith('api_')
    ? fleet.apis
    : kind.startsWith('worker_') || kind.startsWith('runner_') || kind === 'clock_offset'
      ? fleet.workers
      : fleet.processes;
  return slots[target % slots.length] as ProcessSlot;
}
