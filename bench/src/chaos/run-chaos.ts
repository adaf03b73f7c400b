/** Runs a plan of faults against a fleet under load, both out of one seed, and reports. */
import { type ChaosReport, makeReport } from './chaos-report.js';
import { ChaosRun } from './chaos-run.js';
import type { ProcessSlot } from './fleet/process-slot.js';
import type { Fsync } from './fleet/redis-host.js';
import { knowsIdempotencyKey } from './load/features.js';
import { Load } from './load/load.js';
import { FAULT_NAMES, type FaultName } from './plan/fault-kinds.js';
import { type Fault, makePlan } from './plan/plan.js';

export interface ChaosOptions {
  seed: number;
  ids: number;
  faults: number;
  /** Default: all that can be carried out here. */
  only?: readonly FaultName[];
  keep?: boolean;
  fsync?: Fsync;
  workers?: number;
  apis?: number;
  /** Root of an older build to begin with; else why there is none. */
  oldBuild?: { root: string } | { obstacle: string };
  /** Longest that a request may wait beside a worker with nothing to do, in seconds. Default 12. */
  idleLimitS?: number;
  say?(line: string): void;
}

const LOCK_MS = 2_000;
/** How long a fault takes, about: the load is spread over it. */
const FAULT_MS = 2_000;
const DRIVERS = 12;
/** Longest pause of a driver between two calls. */
const MOST_PAUSE_MS = 400;
/** Nothing ends for so long: what is open then is lost. */
const PATIENCE_MS = 90_000;
/** Longest that a request may wait beside a worker with nothing to do: lock time, a check for stalled jobs, a backoff. */
const IDLE_LIMIT_S = (2 * LOCK_MS) / 1_000 + 8;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, ids, workers = 3, apis = 2, idleLimitS = IDLE_LIMIT_S, say = () => {} } = options;
  const begun = Date.now();
  const run = await ChaosRun.start({
    ...{ workers, apis, lockMs: LOCK_MS, say },
    ...{ fsync: options.fsync, keep: options.keep, oldBuild: rootOf(options) },
  });
  try {
    const { kinds, skipped } = possible(run, options);
    const upgrades = kinds.includes('upgrade') ? workers + apis : 0;
    const plan = makePlan({ seed, faults: options.faults, ids, workers, apis, kinds, upgrades });
    say(`chaos: seed ${seed}, ${plan.length} faults, ${ids} requests, logs in ${run.fleet.folder}`);
    const idempotency = await knowsIdempotencyKey(run.client, run.fleet.apis[0] as ProcessSlot);
    const load = new Load({
      ...{ fleet: run.fleet, ledger: run.ledger, client: run.client, seed, ids, drivers: DRIVERS },
      pauseMs: Math.min(MOST_PAUSE_MS, (DRIVERS * FAULT_MS * plan.length) / ids),
      ...{ sinks: run.sinks, idempotency },
    });
    const stopTelling = tellProgress(run, load, say);
    try {
      await Promise.all([load.run(), carryOut(plan, run, load, ids)]);
      say('chaos: waiting for what is open');
      await run.settle(PATIENCE_MS);
    } finally {
      stopTelling();
    }
    const judged = await run.judgeAll();
    const seconds = (Date.now() - begun) / 1_000;
    return makeReport(run, judged, { seed, skipped, idleLimitS, seconds });
  } finally {
    await run.stop();
  }
}

function rootOf({ oldBuild }: ChaosOptions): string | undefined {
  return oldBuild && 'root' in oldBuild ? oldBuild.root : undefined;
}

/** Kinds that can be carried out, and why the others cannot. */
function possible(
  run: ChaosRun,
  { only = FAULT_NAMES, oldBuild = { obstacle: 'no older build: --long has one' } }: ChaosOptions,
): { kinds: FaultName[]; skipped: Partial<Record<FaultName, string>> } {
  const obstacles: Partial<Record<FaultName, string | undefined>> = {
    disk_full: run.fleet.redis.disk.obstacle,
    upgrade: 'obstacle' in oldBuild ? oldBuild.obstacle : undefined,
  };
  const kinds = only.filter((kind) => obstacles[kind] === undefined);
  if (kinds.length === 0)
    throw new Error(`none of these can be carried out here: ${JSON.stringify(obstacles)}`);
  const skipped = Object.fromEntries(
    only.filter((kind) => !kinds.includes(kind)).map((kind) => [kind, obstacles[kind]]),
  );
  return { kinds, skipped };
}

/** Fault by fault, each when so much has been offered; while one goes on, the load up to the next may come. */
async function carryOut(plan: readonly Fault[], run: ChaosRun, load: Load, ids: number): Promise<void> {
  const going: Promise<void>[] = [];
  load.allow(plan[0]?.at ?? ids);
  for (const [index, fault] of plan.entries()) {
    await load.reached(fault.at);
    load.allow(plan[index + 1]?.at ?? ids);
    const done = run.injector.inject(fault);
    done.catch(() => {});
    going.push(done);
    if (!fault.together) await done;
  }
  await Promise.all(going);
}

const TELL_EVERY_MS = 5_000;

function tellProgress(run: ChaosRun, load: Load, say: (line: string) => void): () => void {
  const timer = setInterval(() => {
    const { size } = run.ledger;
    const { unknown, refused } = load.counts;
    say(
      `chaos: ${run.injector.count} faults, ${load.offered} offered, ${size} accepted, ${run.witness.open.size} open; ${unknown} calls without an answer, ${refused} refused`,
    );
  }, TELL_EVERY_MS);
  return () => clearInterval(timer);
}
