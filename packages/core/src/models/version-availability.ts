/**
 * What the live workers say about the versions of a model: where one is ready, whether one could be loaded, whether
 * its runs keep failing. Pure; resolve-version.ts goes by it.
 */
import type { LoadedModel, LoadMode, ModelDeployment, WorkerHeartbeat } from '@remuda/schemas';
import { classOf } from '../devices/affinity-rules.js';

export interface VersionAvailability {
  /** Device classes on which a live worker has it ready. */
  readyOn: ReadonlySet<string>;
  /** A live worker is loading it, or has its files and would load it. */
  coming: boolean;
  /** It is ready somewhere, and wherever it is its runs keep failing. */
  broken: boolean;
}

export type Availability = ReadonlyMap<string, VersionAvailability>;

const COMING: ReadonlySet<string> = new Set(['loading', 'warming', 'verifying', 'unloaded']);
/** Of a version that no live worker has named. */
const NOWHERE: VersionAvailability = { readyOn: new Set(), coming: false, broken: false };

/** By version. A worker that drains takes no new work, so what it says does not count. */
export function availabilityOf(
  copies: readonly { worker: WorkerHeartbeat; loaded: LoadedModel }[],
): Availability {
  const found = new Map<string, { readyOn: Set<string>; coming: boolean; broken: boolean }>();
  for (const { worker, loaded } of copies) {
    if (worker.state === 'draining') continue;
    let version = found.get(loaded.version);
    if (!version) {
      version = { readyOn: new Set(), coming: false, broken: true };
      found.set(loaded.version, version);
    }
    if (COMING.has(loaded.state)) version.coming = true;
    if (loaded.state !== 'ready') continue;
    version.readyOn.add(classOf(loaded.device));
    if (loaded.breaker !== 'open') version.broken = false;
  }
  for (const version of found.values()) if (version.readyOn.size === 0) version.broken = false;
  return found;
}

export function availableAt(availability: Availability, version: string): VersionAvailability {
  return availability.get(version) ?? NOWHERE;
}

/** Whether the desired state lets workers load a version, at once or when a request asks for it. */
export function mayLoad(
  version: string,
  { registered, loads, load_mode }: Pick<ModelDeployment, 'registered' | 'loads' | 'load_mode'>,
  configured: LoadMode,
): boolean {
  if (!registered || loads[version] === 'unloaded') return false;
  return loads[version] === 'loaded' || (load_mode ?? configured) !== 'explicit';
}
