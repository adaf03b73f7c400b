/**
 * What the fleet offers for each model version, by device class: built once with each view of the fleet, so that a
 * request is routed by a look-up and not by a walk over all workers.
 */
import { DEVICE_CLASSES, type DeviceClass, type LoadedModel, type WorkerHeartbeat } from '@remuda/schemas';

/** All devices of one class together, as they are for one version of a model. */
export interface ClassFacts {
  deviceClass: DeviceClass;
  /** Workers that have it ready there, and whose runs do not keep failing. */
  ready: number;
  /** Workers that are loading it, or load it when a request asks for it. */
  coming: number;
  /** Workers that have it ready, but whose breaker is open. */
  broken: number;
  instances: number;
  /** Rows taken from the queues and not yet finished. */
  rowsInHand: number;
  /** Of all ready devices together, while busy; null: measured on none of them. */
  secondsPerRow: number | null;
  /** Of one device: what a request's own rows take. */
  deviceSecondsPerRow: number | null;
  /** Typical time of a run; null: not measured. */
  runSeconds: number | null;
  /** Unix milliseconds at which any of them last took a request; null: none did. */
  lastUsedAt: number | null;
}

export type ClassIndex = ReadonlyMap<string, readonly ClassFacts[]>;

const CLASSES: ReadonlySet<string> = new Set(DEVICE_CLASSES);
const COMING: ReadonlySet<LoadedModel['state']> = new Set(['loading', 'warming', 'verifying']);

/** By model@version, and by model for all its versions together. Workers that take nothing new are left out. */
export function indexClasses(workers: readonly WorkerHeartbeat[]): ClassIndex {
  const index = new Map<string, Tally[]>();
  for (const worker of workers) {
    if (worker.state === 'draining') continue;
    for (const loaded of worker.models) count(index, loaded);
  }
  const facts = new Map<string, readonly ClassFacts[]>();
  for (const [key, tallies] of index) facts.set(key, tallies.map(factsOf));
  return facts;
}

interface Tally {
  deviceClass: DeviceClass;
  ready: number;
  coming: number;
  broken: number;
  instances: number;
  rowsInHand: number;
  measured: number;
  rowsPerSecond: number;
  runs: number;
  runSeconds: number;
  lastUsedAt: number;
}

function count(index: Map<string, Tally[]>, loaded: LoadedModel): void {
  const colon = loaded.device.indexOf(':');
  const deviceClass = colon < 0 ? loaded.device : loaded.device.slice(0, colon);
  const kind = kindOf(loaded);
  if (kind === null || !CLASSES.has(deviceClass)) return;
  const { model, version } = loaded;
  for (const key of [model, `${model}@${version}`]) {
    add(tallyOf(index, key, deviceClass as DeviceClass), kind, loaded);
  }
}

function kindOf({ state, breaker, load_mode }: LoadedModel): 'ready' | 'coming' | 'broken' | null {
  if (state === 'ready') return breaker === 'open' ? 'broken' : 'ready';
  if (COMING.has(state)) return 'coming';
  return state === 'unloaded' && load_mode === 'on_demand' ? 'coming' : null;
}

function tallyOf(index: Map<string, Tally[]>, key: string, deviceClass: DeviceClass): Tally {
  let tallies = index.get(key);
  if (!tallies) {
    tallies = [];
    index.set(key, tallies);
  }
  let tally = tallies.find((candidate) => candidate.deviceClass === deviceClass);
  if (!tally) {
    tally = { deviceClass, ...NOTHING };
    tallies.push(tally);
  }
  return tally;
}

const NOTHING = {
  ready: 0,
  coming: 0,
  broken: 0,
  instances: 0,
  rowsInHand: 0,
  measured: 0,
  rowsPerSecond: 0,
  runs: 0,
  runSeconds: 0,
  lastUsedAt: 0,
};

function add(tally: Tally, kind: 'ready' | 'coming' | 'broken', loaded: LoadedModel): void {
  tally[kind]++;
  if (kind !== 'ready') return;
  tally.instances += loaded.instances;
  tally.rowsInHand += loaded.backlog_rows;
  if (loaded.last_used_at) tally.lastUsedAt = Math.max(tally.lastUsedAt, Date.parse(loaded.last_used_at));
  if (loaded.seconds_per_row !== null && loaded.seconds_per_row > 0) {
    tally.measured++;
    tally.rowsPerSecond += 1 / loaded.seconds_per_row;
  }
  if (loaded.run_seconds !== null) {
    tally.runs++;
    tally.runSeconds += loaded.run_seconds;
  }
}

/** Devices that are not measured yet are taken for as fast as the mean of the others of their class. */
function factsOf(tally: Tally): ClassFacts {
  const { deviceClass, ready, coming, broken, instances, rowsInHand, measured, rowsPerSecond, runs } = tally;
  const perDevice = measured === 0 ? null : measured / rowsPerSecond;
  return {
    deviceClass,
    ready,
    coming,
    broken,
    instances,
    rowsInHand,
    secondsPerRow: perDevice === null ? null : perDevice / ready,
    deviceSecondsPerRow: perDevice,
    runSeconds: runs === 0 ? null : tally.runSeconds / runs,
    lastUsedAt: tally.lastUsedAt || null,
  };
}
