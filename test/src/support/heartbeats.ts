/** Heartbeats as a worker writes them, for tests that play the worker. */
import type { LoadedModel, WorkerHeartbeat } from '@remuda/schemas';

export function loadedModel(over: Partial<LoadedModel> = {}): LoadedModel {
  return {
    ...{ model: 'model', version: '1', digest: 'digest-1', device: 'cpu', provider: 'cpu', state: 'ready' },
    ...{ reason: null, load_mode: 'eager', instances: 1, memory_bytes: null, last_used_at: null },
    ...{ backlog_rows: 0, seconds_per_row: null, run_seconds: null, breaker: 'closed' },
    ...over,
  };
}

export function heartbeat(
  models: readonly Partial<LoadedModel>[],
  over: Partial<WorkerHeartbeat> = {},
): WorkerHeartbeat {
  const at = new Date().toISOString();
  return {
    ...{ worker_id: 'w1', host: 'h', pid: 1, remuda_version: '0', started_at: at, at, state: 'ready' },
    ...{ healthy: true, unhealthy_reason: null, cores: 1, memory_bytes: 1, rss_bytes: 1, devices: [] },
    ...{ cpu: null, memory_free_bytes: null, deployments_revision: 0 },
    ...{ in_flight: 0, rows_per_s: 0, batch_mean: 0, rows_total: 0 },
    models: models.map(loadedModel),
    ...over,
  };
}
