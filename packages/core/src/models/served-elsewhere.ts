/** Whether another live worker serves a version, or would load it for a request. Pure; read from heartbeats. */
import type {
  DeviceClass,
  HarnessConfig,
  LoadedModel,
  ModelDeployment,
  WorkerHeartbeat,
} from '@remuda/schemas';
import { affinityRules, classOf } from '../devices/affinity-rules.js';
import { meansDevice } from '../devices/fits-device.js';

export interface ElsewhereFacts {
  /** Who asks. */
  workerId: string;
  model: string;
  version: string;
  deviceClass: DeviceClass;
  deployment: Pick<ModelDeployment, 'registered' | 'loads'>;
  workers: readonly WorkerHeartbeat[];
}

const HAS_IT: readonly LoadedModel['state'][] = ['ready', 'loading', 'warming', 'verifying'];

/**
 * starting: no worker has it, but one has not yet told what it has. held_back: one has its files, and the desired state
 * keeps it from loading them.
 */
export type Elsewhere = 'served' | 'loadable' | 'starting' | 'held_back' | 'no';

export function servedElsewhere(facts: ElsewhereFacts): Elsewhere {
  const { workerId, model, version, deviceClass } = facts;
  const others = facts.workers.filter(
    (worker) => worker.worker_id !== workerId && worker.state !== 'draining',
  );
  const entries = others.flatMap((worker) =>
    worker.models.filter(
      (entry) => entry.model === model && entry.version === version && classOf(entry.device) === deviceClass,
    ),
  );
  if (entries.some(({ state }) => HAS_IT.includes(state))) return 'served';
  if (entries.some((entry) => isLoadable(entry, facts))) return 'loadable';
  if (others.some(({ state }) => state === 'starting')) return 'starting';
  return entries.some(isUnloaded) ? 'held_back' : 'no';
}

/** Whether another live worker serves any version of the model on the class. */
export function modelServedElsewhere({
  workerId,
  model,
  deviceClass,
  workers,
}: Pick<ElsewhereFacts, 'workerId' | 'model' | 'deviceClass' | 'workers'>): boolean {
  return workers.some(
    (worker) =>
      worker.worker_id !== workerId &&
      worker.state !== 'draining' &&
      worker.models.some(
        (entry) =>
          entry.model === model && classOf(entry.device) === deviceClass && HAS_IT.includes(entry.state),
      ),
  );
}

/** Whether a live worker has the version ready on a device that the rules of its model speak of. */
export function readyByRules({
  model,
  version,
  config,
  workers,
}: Pick<ElsewhereFacts, 'model' | 'version' | 'workers'> & {
  config: Pick<HarnessConfig, 'affinity' | 'device'>;
}): boolean {
  const rules = affinityRules(config);
  return workers
    .filter(({ state }) => state !== 'draining')
    .flatMap(({ models }) => models)
    .some(
      ({ device, ...entry }) =>
        entry.model === model &&
        entry.version === version &&
        entry.state === 'ready' &&
        rules.some((rule) => meansDevice(rule, { device, device_class: classOf(device) })),
    );
}

function isLoadable(entry: LoadedModel, { deployment, version }: ElsewhereFacts): boolean {
  const asked = deployment.loads[version];
  if (!deployment.registered || asked === 'unloaded') return false;
  return isUnloaded(entry) && (entry.load_mode !== 'explicit' || asked === 'loaded');
}

function isUnloaded({ state }: LoadedModel): boolean {
  return state === 'unloaded' || state === 'draining';
}
