/**
 * Says of a model that it is known from what was published before and that nobody has its files any more. Pure, from
 * what live workers say: they list every version that lies in their repository, also one that is not loaded.
 */
import type { HarnessConfig, ModelDeployment, WorkerHeartbeat } from '@remuda/schemas';
import { affinityRules } from '../devices/affinity-rules.js';
import { fitsDevice } from '../devices/fits-device.js';

export interface FilesFacts {
  model: string;
  /** Whether it lies in the repository that this process sees. */
  inRepository: boolean;
  deployment: Pick<ModelDeployment, 'registered' | 'source'>;
  /** As it was published; null: not known. */
  config: Pick<HarnessConfig, 'affinity' | 'device'> | null;
  workers: readonly WorkerHeartbeat[];
}

/** @returns the problem; undefined: someone has its files, or nobody is there who could say that they are gone */
export function missingFilesProblem(facts: FilesFacts): string | undefined {
  const { model, inRepository, deployment, config, workers } = facts;
  // What is registered with a source is fetched again.
  if (inRepository || !deployment.registered || deployment.source !== null) return undefined;
  if (workers.some(({ models }) => models.some((loaded) => loaded.model === model))) return undefined;
  if (!workers.some((worker) => wouldTellOf(config, worker))) return undefined;
  return `no worker has its files any more; \`remuda models unregister ${model}\` takes it out`;
}

/** A worker names what one of its devices may hold, and not before it has looked at its repository. */
function wouldTellOf(
  config: FilesFacts['config'],
  { state, devices, cores }: Pick<WorkerHeartbeat, 'state' | 'devices' | 'cores'>,
): boolean {
  if (state !== 'ready') return false;
  if (config === null || devices.length === 0) return true;
  return affinityRules(config).some((rule) =>
    devices.some((device) => fitsDevice(rule, { ...device, cores }).fits),
  );
}
