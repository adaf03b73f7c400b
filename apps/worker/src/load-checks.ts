/** What must hold before a version may be loaded, and again before it may serve. Each throws what is wrong, where. */
import { RemudaError } from '@remuda/core/errors';
import type { ModelSource } from '@remuda/core/harness/harness';
import { digestConflict, wrongDigest } from '@remuda/core/models/digest-conflict';
import type { AffinityRule, WorkerHeartbeat } from '@remuda/schemas';
import type { HostedDevice } from './hosted-device.js';
import { PassingLoadError } from './load-failure.js';
import type { SlotAim } from './slot-aim.js';

export interface LoadCheckDeps {
  workerId: string;
  /** The fleet, as of now. */
  fleet(): Promise<readonly WorkerHeartbeat[]>;
  /** @throws RemudaError where a rule of the model keeps it off the device now */
  checkRule(rule: AffinityRule, device: HostedDevice): Promise<void>;
}

/** Its files are those that were registered, its rule allows the device, no other worker serves other files. */
export async function checkBeforeLoad(
  source: ModelSource,
  { rule, registeredDigest }: SlotAim,
  device: HostedDevice,
  deps: LoadCheckDeps,
): Promise<void> {
  const wrong = wrongDigest(claimOf(source, deps), registeredDigest);
  if (wrong !== null) throw new RemudaError('model_load_failed', wrong);
  if (rule) await deps.checkRule(rule, device);
  await checkFleet(source, deps);
}

/** Another worker may have become ready with other files while this one loaded. */
export async function checkFleet(source: ModelSource, deps: LoadCheckDeps): Promise<void> {
  const conflict = digestConflict(claimOf(source, deps), await deps.fleet());
  if (conflict !== null) throw new PassingLoadError(conflict);
}

function claimOf({ model, version, digest, folder }: ModelSource, { workerId }: LoadCheckDeps) {
  return { workerId, model, version, digest, folder };
}
