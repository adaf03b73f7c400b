/** Heartbeats written by a test that plays a fleet: only what is looked at has to be said. */
import type { LoadedModel, WorkerHeartbeat } from '@remuda/schemas';
import type { Rig } from './rig.js';

const LIVES_MS = 60_000;

export function heartbeat(workerId: string, models: Partial<LoadedModel>[]): WorkerHeartbeat {
  return {
    worker_id: workerId,
    host: 'host',
    pid: 1,
    remuda_version: '0.1.0',
    started_at: new Date(0).toISOString(),
    at: new Date().toISOString(),
    state: 'ready',
    healthy: true,
    unhealthy_reason: null,
    cores: 2,
    cpu: null,
    memory_bytes: 1,
    memory_free_bytes: 1,
    deployments_revision: 0,
    rss_bytes: 1,
    devices: [],
    models: models.map((given) => ({
      model: 'model',
      version: '1',
      digest: 'digest-1',
      device: 'cpu',
      provider: 'cpu',
      state: 'ready',
      reason: null,
      load_mode: 'eager',
      instances: 1,
      memory_bytes: null,
      last_used_at: null,
      backlog_rows: 0,
      seconds_per_row: null,
      run_seconds: null,
      breaker: 'closed',
      ...given,
    })),
    in_flight: 0,
    rows_per_s: 0,
    batch_mean: 0,
    rows_total: 0,
  };
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
