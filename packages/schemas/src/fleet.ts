/** The fleet: what each worker's heartbeat says. */
import * as z from 'zod';

export const LoadedModel = z
  .strictObject({
    model: z.string(),
    version: z.string(),
    digest: z.string(),
    device: z.string(),
    provider: z.string(),
    state: z.enum(['loading', 'ready', 'failed', 'unloaded']),
    reason: z.string().nullable().describe('Why it failed.'),
  })
  .meta({ id: 'LoadedModel' });
export type LoadedModel = z.infer<typeof LoadedModel>;

export const DeviceStatus = z
  .strictObject({
    device: z.string().describe('cpu, cuda:0, …'),
    device_class: z.string(),
    description: z.string(),
    runner: z.enum(['starting', 'ready', 'restarting', 'stopped']),
    runner_pid: z.int().nullable(),
    runner_restarts: z.int(),
    runner_rss_bytes: z.int().nullable(),
  })
  .meta({ id: 'DeviceStatus' });
export type DeviceStatus = z.infer<typeof DeviceStatus>;

export const WorkerHeartbeat = z
  .strictObject({
    worker_id: z.string(),
    host: z.string(),
    pid: z.int(),
    remuda_version: z.string(),
    started_at: z.iso.datetime(),
    at: z.iso.datetime().describe('When this heartbeat was written.'),
    state: z.enum(['starting', 'ready', 'draining']),
    healthy: z.boolean(),
    unhealthy_reason: z.string().nullable(),
    cores: z.int(),
    memory_bytes: z.int(),
    rss_bytes: z.int(),
    devices: z.array(DeviceStatus),
    models: z.array(LoadedModel),
    in_flight: z.int().describe('Items taken from the queues and not yet finished.'),
    rows_per_s: z.number().describe('Over the last ten seconds.'),
    batch_mean: z.number().describe('Mean rows of a run over the last ten seconds; 0 when idle.'),
    rows_total: z.int(),
  })
  .meta({ id: 'WorkerHeartbeat' });
export type WorkerHeartbeat = z.infer<typeof WorkerHeartbeat>;

export const Fleet = z
  .strictObject({ workers: z.array(WorkerHeartbeat), at: z.iso.datetime() })
  .meta({ id: 'Fleet' });
export type Fleet = z.infer<typeof Fleet>;

/** /livez and /readyz. */
export const Health = z
  .strictObject({
    status: z.enum(['ok', 'unhealthy', 'draining']),
    checks: z.record(z.string(), z.strictObject({ ok: z.boolean(), detail: z.string() })),
  })
  .meta({ id: 'Health' });
export type Health = z.infer<typeof Health>;
