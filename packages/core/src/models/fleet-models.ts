/**
 * What live workers say about each model, ready to be decided upon: their copies of its versions, and the
 * configuration that they have published. A worker that drains no longer counts.
 */
import type { DeviceClass, HarnessConfig, LoadedModel, LoadMode, WorkerHeartbeat } from '@remuda/schemas';
import { fieldOf, type Published } from '../requests/published-signatures.js';
import type { VersionCopy } from './reference-moves.js';

export interface FleetModel {
  copies: VersionCopy[];
  loadMode: LoadMode;
}

/** By model. */
export function fleetModels(workers: readonly WorkerHeartbeat[]): Map<string, FleetModel> {
  const models = new Map<string, FleetModel>();
  for (const { worker_id: workerId, state: workerState, models: loaded } of workers) {
    if (workerState === 'draining') continue;
    for (const { model, version, device, state, reason, load_mode: loadMode, breaker } of loaded) {
      const known = models.get(model) ?? { copies: [], loadMode };
      known.copies.push({ workerId, version, device, state, reason, breaker });
      models.set(model, known);
    }
  }
  return models;
}

/** As workers read it in model.yaml, for who has not read that itself; of a model that nobody has, the default. */
export function toldLoadMode(copies: readonly { loaded: LoadedModel }[]): LoadMode {
  // A fault of the model itself has no version, and nothing of model.yaml.
  return copies.find(({ loaded }) => loaded.version !== '')?.loaded.load_mode ?? 'eager';
}

/** The runs of the version keep failing wherever it is loaded. */
export function isBroken({ copies }: FleetModel, version: string): boolean {
  const ready = copies.filter((copy) => copy.version === version && copy.state === 'ready');
  return ready.length > 0 && ready.every(({ breaker }) => breaker === 'open' || breaker === 'half_open');
}

type ByField = ReadonlyMap<string, Published>;

/**
 * The configuration of the newest version that is ready, else of the newest that was published: model.yaml is one for
 * all versions, and a version that is loaded has the latest reading of it.
 */
export function configOf(
  model: string,
  { copies }: FleetModel,
  published: ByField,
): HarnessConfig | undefined {
  const newestFirst = [...copies].sort((a, b) => Number(b.version) - Number(a.version));
  for (const onlyReady of [true, false]) {
    for (const { version, state } of newestFirst) {
      const found =
        !onlyReady || state === 'ready' ? published.get(fieldOf(model, version))?.config : undefined;
      if (found) return found;
    }
  }
  return undefined;
}

export function classesOf(
  model: string,
  version: string,
  published: ByField,
): readonly DeviceClass[] | undefined {
  return published.get(fieldOf(model, version))?.signature.affinity;
}
