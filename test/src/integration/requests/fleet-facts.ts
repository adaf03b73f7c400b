/** Heartbeats written by a test that plays a fleet: only what is looked at has to be said. */
import type { LoadedModel, WorkerHeartbeat } from '@remuda/schemas';
import { heartbeat as heartbeatOf } from '../../support/heartbeats.js';
import type { Rig } from './rig.js';

const LIVES_MS = 60_000;

export function heartbeat(workerId: string, models: Partial<LoadedModel>[]): WorkerHeartbeat {
  return heartbeatOf(models, { worker_id: workerId, cores: 2 });
}

/** From now on this worker is alive, and the API of the rig knows. */
export async function alive(rig: Rig, workerId: string, models: Partial<LoadedModel>[]): Promise<void> {
  const { redis, keys } = rig;
  await redis.set(keys.worker(workerId), JSON.stringify(heartbeat(workerId, models)), 'PX', LIVES_MS);
  await redis.zadd(keys.workers(), Date.now(), workerId);
  await rig.cases.fleetView.refresh();
}

export async function gone(rig: Rig, workerId: string): Promise<void> {
  await rig.redis.del(rig.keys.worker(workerId));
  await rig.cases.fleetView.refresh();
}
