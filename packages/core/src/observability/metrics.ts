/**
 * Every metric of Remuda in one table, and the only file that knows prom-client. Names begin with remuda_, times are
 * seconds, labels are model, version, device_class, lane, outcome and the like: never an id, since each new value of a
 * label is a new series for ever. docs/metrics.md is written from the table; a test keeps them in step.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

interface MetricRow {
  name: `remuda_${string}`;
  kind: 'counter' | 'gauge' | 'histogram';
  help: string;
  labels: readonly string[];
  buckets?: readonly number[];
}

const SHORT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const LONG_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800,
];
const POWERS_OF_TWO = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const BYTES = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864];

const PARTITION = ['model', 'device_class', 'lane'] as const;
const MODEL_ON_DEVICE = ['model', 'version', 'device_class'] as const;
/** For gauges, which two devices of a class would overwrite for each other. */
const MODEL_ON_ONE_DEVICE = ['model', 'version', 'device'] as const;

export const METRICS = {
  // The API
  httpRequests: {
    name: 'remuda_http_requests_total',
    kind: 'counter',
    help: 'HTTP calls by route pattern and status.',
    labels: ['method', 'route', 'status'],
  },
  httpSeconds: {
    name: 'remuda_http_request_seconds',
    kind: 'histogram',
    help: 'Time of an HTTP call; calls that wait for a result included.',
    labels: ['method', 'route'],
    buckets: LONG_SECONDS,
  },
  accepted: {
    name: 'remuda_accepted_total',
    kind: 'counter',
    help: 'Requests accepted.',
    labels: PARTITION,
  },
  refused: {
    name: 'remuda_refused_total',
    kind: 'counter',
    help: 'Requests refused, by error code.',
    labels: ['code'],
  },
  payloadBytes: {
    name: 'remuda_payload_bytes',
    kind: 'histogram',
    help: 'Size of the input of one item as it is stored.',
    labels: ['model'],
    buckets: BYTES,
  },
  waitHolders: {
    name: 'remuda_wait_holders',
    kind: 'gauge',
    help: 'HTTP calls that wait for a result now.',
    labels: [],
  },
  idempotency: {
    name: 'remuda_idempotent_calls_total',
    kind: 'counter',
    help: 'Calls with an Idempotency-Key, by outcome: first, replayed, in_progress, mismatch, taken_over (the call before was not finished).',
    labels: ['outcome'],
  },
  resultCache: {
    name: 'remuda_result_cache_requests_total',
    kind: 'counter',
    help: 'Requests of models with a result cache, by outcome: hit, coalesced (an identical one is under way), miss, bypass.',
    labels: ['model', 'outcome'],
  },
  resultCacheBytes: {
    name: 'remuda_result_cache_bytes',
    kind: 'gauge',
    help: 'Bytes of the result cache of a model, as this process last saw it.',
    labels: ['model'],
  },
  resultCacheEvictions: {
    name: 'remuda_result_cache_evictions_total',
    kind: 'counter',
    help: 'Answers dropped from the result cache before their time, for want of room.',
    labels: ['model'],
  },
  // The queues
  queueDepth: {
    name: 'remuda_queue_depth',
    kind: 'gauge',
    help: 'Jobs of a queue, by state: waiting, active, delayed.',
    labels: [...PARTITION, 'state'],
  },
  queueOldestAge: {
    name: 'remuda_queue_oldest_age_seconds',
    kind: 'gauge',
    help: 'Age of the job that would be taken next; 0 when none waits.',
    labels: PARTITION,
  },
  queueWait: {
    name: 'remuda_queue_wait_seconds',
    kind: 'histogram',
    help: 'From acceptance until the batch was closed.',
    labels: PARTITION,
    buckets: LONG_SECONDS,
  },
  unended: {
    name: 'remuda_unended',
    kind: 'gauge',
    help: 'What of a queue has not ended, waiting or running: requests, rows, bytes of input. Limits look at it.',
    labels: [...PARTITION, 'unit'],
  },
  unendedLimit: {
    name: 'remuda_unended_limit',
    kind: 'gauge',
    help: 'Limits of each queue: requests, rows, bytes, wait_seconds; absent where there is none.',
    labels: ['unit'],
  },
  tenantUnended: {
    name: 'remuda_tenant_unended',
    kind: 'gauge',
    help: 'What of a tenant has not ended: requests, rows, bytes; of the 100 tenants that have most.',
    labels: ['tenant', 'unit'],
  },
  drainRate: {
    name: 'remuda_drain_requests_per_second',
    kind: 'gauge',
    help: 'Requests of a queue that ended in a second, as this API last measured it; absent until measured.',
    labels: PARTITION,
  },
  redisMemoryShare: {
    name: 'remuda_redis_memory_share',
    kind: 'gauge',
    help: 'Share of maxmemory that Redis has used; 0 without a limit. From 0.8 on nothing is accepted.',
    labels: [],
  },
  // The workers
  requests: {
    name: 'remuda_requests_total',
    kind: 'counter',
    help: 'Requests that ended, by outcome: succeeded, partial, failed, cancelled, expired.',
    labels: ['model', 'lane', 'outcome'],
  },
  requestSeconds: {
    name: 'remuda_request_seconds',
    kind: 'histogram',
    help: 'From acceptance until the outcome was written.',
    labels: ['model', 'lane'],
    buckets: LONG_SECONDS,
  },
  batches: {
    name: 'remuda_batches_total',
    kind: 'counter',
    help: 'Batches run, by outcome: ok, failed.',
    labels: [...MODEL_ON_DEVICE, 'outcome'],
  },
  rows: {
    name: 'remuda_rows_total',
    kind: 'counter',
    help: 'Rows run.',
    labels: MODEL_ON_DEVICE,
  },
  batchRows: {
    name: 'remuda_batch_rows',
    kind: 'histogram',
    help: 'Rows of one run.',
    labels: MODEL_ON_DEVICE,
    buckets: POWERS_OF_TWO,
  },
  fetchSeconds: {
    name: 'remuda_fetch_seconds',
    kind: 'histogram',
    help: 'Time to fetch and decode the inputs of one batch.',
    labels: MODEL_ON_DEVICE,
    buckets: SHORT_SECONDS,
  },
  runSeconds: {
    name: 'remuda_run_seconds',
    kind: 'histogram',
    help: 'Time of one run of the model.',
    labels: MODEL_ON_DEVICE,
    buckets: SHORT_SECONDS,
  },
  writeSeconds: {
    name: 'remuda_write_seconds',
    kind: 'histogram',
    help: 'Time to encode and write the outcomes of one batch.',
    labels: MODEL_ON_DEVICE,
    buckets: SHORT_SECONDS,
  },
  inFlight: {
    name: 'remuda_in_flight',
    kind: 'gauge',
    help: 'Items taken from the queues and not yet finished.',
    labels: PARTITION,
  },
  workerHealthy: {
    name: 'remuda_worker_healthy',
    kind: 'gauge',
    help: '1 while this worker makes progress or has nothing to do, 0 when it has backlog and makes none.',
    labels: [],
  },
  modelsLoaded: {
    name: 'remuda_models_loaded',
    kind: 'gauge',
    help: '1 for each version that is loaded and ready.',
    labels: MODEL_ON_DEVICE,
  },
  // The life of models
  referenceMoves: {
    name: 'remuda_reference_moves_total',
    kind: 'counter',
    help: 'Moves of default and aliases by the steward, by kind: moved, moved_back, dropped, held.',
    labels: ['model', 'kind'],
  },
  batchLimit: {
    name: 'remuda_batch_limit',
    kind: 'gauge',
    help: 'Most rows of a batch now: max_batch_size, or less where latency_objective_ms asks for it.',
    labels: MODEL_ON_ONE_DEVICE,
  },
  backlogRows: {
    name: 'remuda_backlog_rows',
    kind: 'gauge',
    help: 'Rows taken from the queues and not yet finished.',
    labels: MODEL_ON_ONE_DEVICE,
  },
  secondsPerRow: {
    name: 'remuda_profile_seconds_per_row',
    kind: 'gauge',
    help: 'Measured time of a row while there is enough to do, all instances together; absent until measured.',
    labels: MODEL_ON_ONE_DEVICE,
  },
  runP95: {
    name: 'remuda_profile_run_seconds',
    kind: 'gauge',
    help: 'Time of a run at the 95th percentile of the last 64; absent until measured.',
    labels: MODEL_ON_ONE_DEVICE,
  },
  breakerState: {
    name: 'remuda_breaker_state',
    kind: 'gauge',
    help: '0 closed, 1 half open (one batch is tried), 2 open: its runs keep failing, jobs are handed back.',
    labels: MODEL_ON_ONE_DEVICE,
  },
  canaryRollbacks: {
    name: 'remuda_canary_rollbacks_total',
    kind: 'counter',
    help: 'Canaries taken back by the steward, by why: errors, latency, crashes, breaker.',
    labels: ['model', 'by'],
  },
  shadowCopies: {
    name: 'remuda_shadow_copies_total',
    kind: 'counter',
    help: 'Copies for shadow versions: submitted, skipped (too many wait) or lost by the API; compared or not_compared by the workers.',
    labels: ['model', 'outcome'],
  },
  // Webhooks
  webhookDeliveries: {
    name: 'remuda_webhook_deliveries_total',
    kind: 'counter',
    help: 'Deliveries that ended, by outcome: delivered, given_up.',
    labels: ['outcome'],
  },
  webhookAttempts: {
    name: 'remuda_webhook_attempts_total',
    kind: 'counter',
    help: 'Attempts, by outcome: delivered, answer (another status), redirect, gone, timeout, connection, address_refused.',
    labels: ['outcome'],
  },
  webhookSeconds: {
    name: 'remuda_webhook_attempt_seconds',
    kind: 'histogram',
    help: 'Time of an attempt, by outcome.',
    labels: ['outcome'],
    buckets: SHORT_SECONDS,
  },
  webhookPutOff: {
    name: 'remuda_webhook_put_off_total',
    kind: 'counter',
    help: 'Deliveries put off without an attempt, by why: busy (as many to that host as may be at once), breaker.',
    labels: ['reason'],
  },
  webhookBreakers: {
    name: 'remuda_webhook_breakers_open',
    kind: 'gauge',
    help: 'Hosts to which this worker sends nothing for now, or one delivery to try.',
    labels: [],
  },
  webhookOutbox: {
    name: 'remuda_webhook_outbox',
    kind: 'gauge',
    help: 'Deliveries of the whole fleet that have not ended; each worker that delivers says the same.',
    labels: [],
  },
  // Bulk jobs
  bulkJobs: {
    name: 'remuda_bulk_jobs',
    kind: 'gauge',
    help: 'Bulk jobs that this worker coordinates.',
    labels: [],
  },
  bulkRows: {
    name: 'remuda_bulk_rows_total',
    kind: 'counter',
    help: 'Rows of bulk jobs, by outcome: answered, failed, repeated (run again, since their chunk was lost).',
    labels: ['outcome'],
  },
  bulkChunksInFlight: {
    name: 'remuda_bulk_chunks_in_flight',
    kind: 'gauge',
    help: 'Chunks that the coordinators of this worker wait for.',
    labels: [],
  },
  bulkCoordinatorDeaths: {
    name: 'remuda_bulk_coordinator_deaths_total',
    kind: 'counter',
    help: 'Coordinator processes that died and were replaced.',
    labels: [],
  },
  // Trouble
  breakerOpened: {
    name: 'remuda_breaker_opened_total',
    kind: 'counter',
    help: 'Times that the breaker of a version opened, probes that failed included.',
    labels: MODEL_ON_DEVICE,
  },
  runnerRestarts: {
    name: 'remuda_runner_restarts_total',
    kind: 'counter',
    help: 'Runner processes replaced, by reason: crashed, timeout, memory.',
    labels: ['device_class', 'reason'],
  },
  fencedWrites: {
    name: 'remuda_fenced_writes_total',
    kind: 'counter',
    help: 'Outcomes thrown away because another worker had the request, or it had ended.',
    labels: ['model', 'reason'],
  },
  deadLetters: {
    name: 'remuda_dead_letters',
    kind: 'gauge',
    help: 'Requests that were given up and are kept to be looked at or run again.',
    labels: [],
  },
  deadLetterBytes: {
    name: 'remuda_dead_letter_bytes',
    kind: 'gauge',
    help: 'Bytes of the inputs of these.',
    labels: [],
  },
  retries: {
    name: 'remuda_retries_total',
    kind: 'counter',
    help: 'Requests put back to be tried again, by error code.',
    labels: ['model', 'code'],
  },
  bisections: {
    name: 'remuda_bisections_total',
    kind: 'counter',
    help: 'Failed batches that were run again in parts.',
    labels: ['model'],
  },
  repairs: {
    name: 'remuda_repairs_total',
    kind: 'counter',
    help: 'What was put right, by kind: expired, taken_out, rerouted; job_added, job_freed, job_removed, payload_removed, outcome_removed, retention_set, relisted, usage_recounted, worker_lost.',
    labels: ['kind'],
  },
  lost: {
    name: 'remuda_lost_total',
    kind: 'counter',
    help: 'Accepted requests that Redis no longer had when the connection of the API came back.',
    labels: [],
  },
  redisErrors: {
    name: 'remuda_redis_errors_total',
    kind: 'counter',
    help: 'Redis commands and connections that failed, by role of the connection.',
    labels: ['role', 'reason'],
  },
} as const satisfies Record<string, MetricRow>;

type MetricTable = typeof METRICS;
type LabelsOf<Row extends MetricRow> = Record<Row['labels'][number], string>;

export interface CounterMetric<Labels> {
  inc(labels: Labels, by?: number): void;
}

export interface GaugeMetric<Labels> {
  set(labels: Labels, value: number): void;
  inc(labels: Labels, by?: number): void;
  dec(labels: Labels, by?: number): void;
  /** Takes all series away: before a refresh, so that what is gone does not stay at its last value. */
  reset(): void;
}

export interface HistogramMetric<Labels> {
  observe(labels: Labels, value: number): void;
}

type MetricOf<Row extends MetricRow> = Row['kind'] extends 'counter'
  ? CounterMetric<LabelsOf<Row>>
  : Row['kind'] extends 'gauge'
    ? GaugeMetric<LabelsOf<Row>>
    : HistogramMetric<LabelsOf<Row>>;

export type Metrics = { readonly [Name in keyof MetricTable]: MetricOf<MetricTable[Name]> } & {
  /** The text that /metrics answers with, after the refreshers have run. */
  text(): Promise<string>;
  readonly contentType: string;
  /** Adds what brings gauges up to date just before they are read. A refresher that fails does not hide the rest. */
  refreshBefore(refresher: () => Promise<void> | void): void;
};

export interface MetricsOptions {
  /** Default true: CPU, memory, event loop lag and garbage collection of this process, under their usual names. */
  processMetrics?: boolean;
}

/** All metrics of one process, in a registry of their own. */
export function createMetrics({ processMetrics = true }: MetricsOptions = {}): Metrics {
  const registry = new Registry();
  if (processMetrics) collectDefaultMetrics({ register: registry });
  const members = Object.entries<MetricRow>(METRICS).map(([member, row]) => [member, create(row, registry)]);
  const refreshers: Array<() => Promise<void> | void> = [];
  return {
    ...Object.fromEntries(members),
    contentType: registry.contentType,
    refreshBefore: (refresher: () => Promise<void> | void) => refreshers.push(refresher),
    async text() {
      await Promise.allSettled(refreshers.map(async (refresher) => refresher()));
      return registry.metrics();
    },
  } as Metrics;
}

function create({ name, kind, help, labels, buckets }: MetricRow, registry: Registry): unknown {
  const common = { name, help, labelNames: [...labels], registers: [registry] };
  if (kind === 'counter') return new Counter(common);
  if (kind === 'gauge') return new Gauge(common);
  return new Histogram({ ...common, buckets: [...(buckets ?? SHORT_SECONDS)] });
}
