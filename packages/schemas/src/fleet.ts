/** The fleet: what each worker's heartbeat says. */
import * as z from 'zod';
import { LoadMode, LoadState } from './model-versions.js';

/** One version on one device of a worker. */
export const LoadedModel = z
  .strictObject({
    model: z.string(),
    version: z.string(),
    digest: z.string(),
    device: z.string(),
    provider: z.string().describe('The execution provider that really runs it; empty before it is loaded.'),
    state: LoadState,
    reason: z.string().nullable().describe('Why it failed, or is not loaded.'),
    load_mode: LoadMode,
    instances: z.int(),
    memory_bytes: z.int().nullable().describe('What loading it added to the memory of its runner.'),
    last_used_at: z.iso.datetime().nullable(),
    backlog_rows: z.int().describe('Rows taken from the queues and not yet finished.'),
    seconds_per_row: z
      .number()
      .nullable()
      .describe('Measured while busy, all instances together; null: not yet measured.'),
    run_seconds: z.number().nullable().describe('Typical time of a run; null: not yet measured.'),
    breaker: z.enum(['closed', 'open', 'half_open']).describe('open: its runs keep failing.'),
  })
  .meta({ id: 'LoadedModel' });
export type LoadedModel = z.infer<typeof LoadedModel>;

export const DeviceStatus = z
  .strictObject({
    device: z.string().describe('cpu, cuda:0, …'),
    device_class: z.string(),
    description: z.string(),
    memory_total_bytes: z.int().nullable(),
    memory_free_bytes: z.int().nullable().describe('As last probed.'),
    memory_budget_bytes: z.int().nullable().describe('Most that models may take there; null: no limit.'),
    memory_used_bytes: z.int().describe('What the loaded models take, as measured at their load.'),
    utilisation: z.number().min(0).max(1).nullable(),
    compute_capability: z.number().nullable(),
    uuid: z.string().nullable(),
    driver: z.string().nullable(),
    providers: z
      .array(z.strictObject({ provider: z.string(), ok: z.boolean(), reason: z.string().nullable() }))
      .describe('Execution providers that were tried for it, and what came of it.'),
    probed_at: z.iso.datetime().nullable(),
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
    cpu: z
      .strictObject({
        model: z.string(),
        physical_cores: z.int().nullable(),
        threads: z.int(),
        instruction_sets: z.array(z.string()).describe('Those that matter to inference: avx2, avx512f, …'),
        cgroup_cores: z.number().nullable().describe('Limit of the container; null: none.'),
      })
      .nullable(),
    memory_bytes: z.int(),
    memory_free_bytes: z.int().nullable(),
    deployments_revision: z.int().describe('Newest desired state that this worker has taken in.'),
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
