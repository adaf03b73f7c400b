/**
 * How far the fleet is on the way to a model's desired state: what is still under way and what did not work. Pure; the
 * admin API shows it, and `remuda models … --wait` waits for it.
 */
import type { Convergence, LoadedModel, WorkerHeartbeat } from '@remuda/schemas';
import { type TargetFacts, targetRefs } from './target-refs.js';
import { type PlanFacts, type PlannedVersion, planVersions } from './version-plan.js';

export interface ConvergenceFacts extends Omit<PlanFacts, 'loaded'> {
  /** What the live workers say about the model. */
  copies: readonly { worker: WorkerHeartbeat; loaded: LoadedModel }[];
  workers: readonly WorkerHeartbeat[];
}

const UNDER_WAY: ReadonlySet<string> = new Set(['loading', 'warming', 'verifying', 'draining']);
const HELD: ReadonlySet<string> = new Set([...UNDER_WAY, 'ready']);

export function convergenceOf(facts: ConvergenceFacts): Convergence {
  const workers = facts.workers.filter(({ state }) => state !== 'draining');
  const failed = failuresOf(facts);
  const waiting = [
    ...workers.flatMap((worker) =>
      isBehind(worker, facts) ? [`${worker.worker_id} takes in the change`] : [],
    ),
    ...workers.flatMap((worker) => workOf(worker, facts)),
    ...(failed.length === 0 ? unfetchedOf(facts) : []),
    ...missingOf(facts),
    ...movesOf(facts),
  ];
  if (workers.length === 0) waiting.push('no worker is alive');
  return { done: waiting.length === 0, waiting_for: waiting, failed };
}

/** What all workers together should do with each version. */
export function plannedVersions(facts: ConvergenceFacts): PlannedVersion[] {
  return planVersions({ ...facts, loaded: loadedOf(facts.copies) });
}

function isBehind({ deployments_revision }: WorkerHeartbeat, { deployment }: ConvergenceFacts): boolean {
  return deployments_revision < deployment.revision;
}

/** What a worker is doing, and what it still holds that it should not. */
function workOf({ worker_id }: WorkerHeartbeat, facts: ConvergenceFacts): string[] {
  const own = facts.copies.filter(({ worker }) => worker.worker_id === worker_id);
  const plan = planVersions({ ...facts, loaded: loadedOf(own) });
  return own.flatMap(({ loaded: { version, state, device } }) => {
    if (UNDER_WAY.has(state))
      return [
        `${worker_id}: ${version === '' ? 'it is being fetched' : `${version} on ${device} is ${state}`}`,
      ];
    const want = plan.find((planned) => planned.version === version)?.want;
    return want === 'off' && state === 'ready'
      ? [`${worker_id}: ${version} on ${device} is to be unloaded`]
      : [];
  });
}

/** Before its files have come from elsewhere nobody knows which versions it has: that is no state to be content with. */
function unfetchedOf({ deployment, versions }: ConvergenceFacts): string[] {
  if (deployment.source === null || !deployment.registered || versions.length > 0) return [];
  return ['no worker has fetched it from its source'];
}

/** Versions that should be loaded and are so nowhere, though no worker says that it failed. */
function missingOf(facts: ConvergenceFacts): string[] {
  return plannedVersions(facts).flatMap(({ version, want }) => {
    if (want !== 'load') return [];
    const copies = facts.copies.filter(({ loaded }) => loaded.version === version);
    if (copies.some(({ loaded: { state } }) => HELD.has(state) || state === 'failed')) return [];
    // What a worker says that has taken in the change: no room, say.
    const told = copies.find(({ worker, loaded }) => loaded.reason && !isBehind(worker, facts));
    const why = told ? `: ${told.worker.worker_id} says "${told.loaded.reason}"` : '';
    return [`no worker has begun to load ${version}${why}`];
  });
}

/** References that do not lead yet where they should, unless what they should lead to has failed everywhere. */
function movesOf(facts: ConvergenceFacts): string[] {
  const { serving, copies } = facts;
  const isLoaded = (version: string): boolean =>
    copies.some(({ loaded }) => loaded.version === version && loaded.state === 'ready');
  return [...targetRefs(facts satisfies TargetFacts)].flatMap(([ref, version]) =>
    serving?.refs[ref]?.version !== version && isLoaded(version) ? [`${ref} moves to ${version}`] : [],
  );
}

function failuresOf({ copies }: ConvergenceFacts): string[] {
  return copies
    .filter(({ loaded }) => loaded.state === 'failed')
    .map(
      ({ worker, loaded: { version, device, reason } }) =>
        // A fault of the model itself has no version.
        `${worker.worker_id}: ${version === '' ? '' : `${version} on ${device}: `}${reason ?? 'failed'}`,
    );
}

function loadedOf(copies: ConvergenceFacts['copies']): ReadonlySet<string> {
  return new Set(copies.filter(({ loaded }) => HELD.has(loaded.state)).map(({ loaded }) => loaded.version));
}
