/** Every setting of a worker, read from the environment once. The only file of this app that reads it. */
import { hostname } from 'node:os';
import { parseProviderSwitch } from '@remuda/core/devices/provider-switch';
import { BULK_SHARE } from '@remuda/core/fairness/lane-share';
import { newWorkerId } from '@remuda/core/ids';
import { runnerEnvironment } from '@remuda/core/inference/runner-environment';
import { parseBudgets } from '@remuda/core/models/memory-budget';
import { readSettings } from '@remuda/core/settings/settings';
import { keyspaceOf, redisUrlOf, SharedSettings } from '@remuda/core/settings/shared-settings';
import { NOTHING_ALLOWED } from '@remuda/core/webhooks/address-rules';
import * as z from 'zod';

const flag = z.enum(['true', 'false']).transform((text) => text === 'true');
const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean),
);

/** The error of a parser as zod's. */
function parsed<T>(text: string, parse: (text: string) => T, context: z.RefinementCtx): T {
  try {
    return parse(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
    return z.NEVER;
  }
}

export const WorkerSettings = SharedSettings.extend({
  REMUDA_WORKER_ID: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,100}$/)
    .optional()
    .describe(
      'Name in the fleet; default is host, process and eight random characters. Set it to tell workers apart.',
    ),
  REMUDA_WORKER_MODELS: list
    .default([])
    .describe('Models to serve, separated by commas; default all. Set it to give a worker to some models.'),
  REMUDA_WORKER_INSTANCES: z.coerce
    .number()
    .int()
    .min(1)
    .max(64)
    .optional()
    .describe('Most `instances` of any model: set it where several workers share a machine.'),
  REMUDA_WORKER_MEMORY_BUDGET: z
    .string()
    .transform((text, context) => parsed(text, parseBudgets, context))
    .optional()
    .describe(
      'Most memory that models may take on a device: cpu=2GiB,cuda:0=6GiB. Default no limit. Set it to let rarely used models make room for each other.',
    ),
  REMUDA_WORKER_IDLE_MS: z.coerce
    .number()
    .int()
    .min(0)
    .default(10_000)
    .describe('A loaded version outside the version policy goes after no request has used it for this long.'),
  REMUDA_WORKER_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .default(0)
    .describe('Port of /livez, /readyz and /metrics; 0 takes a free one. Set it where a probe must find it.'),
  REMUDA_WORKER_HOST: z.string().default('127.0.0.1').describe('Address that port listens on.'),
  REMUDA_WORKER_BULK_SHARE: z.coerce
    .number()
    .min(0)
    .max(0.9)
    .default(BULK_SHARE)
    .describe(
      'Least share of the rows that the bulk lane gets while both lanes wait. 0: it gets what interactive leaves.',
    ),
  REMUDA_WORKER_BULK_JOBS: z.coerce
    .number()
    .int()
    .min(0)
    .max(100)
    .default(2)
    .describe(
      'Bulk jobs this worker coordinates at once, each in a process of its own. 0: none; it runs their chunks all the same.',
    ),
  REMUDA_WORKER_LOCK_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .max(600_000)
    .default(30_000)
    .describe(
      'After a worker dies its jobs are free again when this has passed, and a second or so. Lower it to recover sooner.',
    ),
  REMUDA_WORKER_DRAIN_MS: z.coerce
    .number()
    .int()
    .min(0)
    .default(20_000)
    .describe('On SIGTERM, how long batches under way may take before they are handed back.'),
  REMUDA_WORKER_STALL_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .default(60_000)
    .describe('With a backlog and no progress for this long, the worker reports itself unhealthy.'),
  REMUDA_WORKER_SWEEPER: flag
    .default(true)
    .describe('Whether this worker may be the one that repairs lost jobs; one of the fleet is at a time.'),
  REMUDA_WORKER_DEVICES: list
    .default([])
    .describe(
      'Devices to serve on, separated by commas; default the CPU and every NVIDIA GPU. Set it for one worker a GPU, or for tensorrt:0, webgpu, coreml, dml.',
    ),
  REMUDA_WORKER_PROBE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'For tests and try-outs: a JSON file of a machine to pretend to be, such as an entry of GET /v1/fleet.',
    ),
  REMUDA_WORKER_PROVIDER_SWITCH: z
    .string()
    .default('')
    .transform((text, context) => parsed(text, parseProviderSwitch, context))
    .describe('For tests and try-outs: cuda=cpu runs what is meant for cuda on the CPU. Never in earnest.'),
  REMUDA_WORKER_WEBHOOKS: flag
    .default(true)
    .describe(
      'Whether this worker delivers webhooks. Set it to false where a machine may not reach outside.',
    ),
  REMUDA_WORKER_WEBHOOK_CONCURRENCY: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(64)
    .describe('Deliveries this worker has under way at once, to all hosts; at most 8 of them to one.'),
  REMUDA_WORKER_WEBHOOK_KEEP_S: z.coerce
    .number()
    .int()
    .min(60)
    .max(30 * 24 * 3600)
    .default(24 * 3600)
    .describe(
      'Seconds that a webhook is kept after it was delivered, for its log and to be sent again. Lower it to save Redis memory.',
    ),
  REMUDA_WORKER_WEBHOOK_SCHEDULE_S: list
    .pipe(
      z
        .array(
          z.coerce
            .number<string>()
            .min(0)
            .max(24 * 3600),
        )
        .max(20),
    )
    .default([])
    .describe(
      'Seconds before each attempt of a webhook, separated by commas; default 0, 5, 300, 1800 and so on, ten over 75 hours. Shorten it for tests.',
    ),
  REMUDA_WORKER_STEWARD: flag
    .default(true)
    .describe(
      'Whether this worker may be the one that moves default and aliases to new versions; one of the fleet is at a time.',
    ),
});
export type WorkerConfig = ReturnType<typeof workerConfig>;

/** The settings of a worker, by purpose. @throws Error that names each wrong or unknown variable */
export function workerConfig(env: NodeJS.ProcessEnv) {
  const settings = readSettings(WorkerSettings, env);
  return {
    workerId: settings.REMUDA_WORKER_ID ?? newWorkerId(hostname(), process.pid),
    redisUrl: redisUrlOf(settings),
    keyspace: keyspaceOf(settings),
    priorityStepRows: settings.REMUDA_PRIORITY_STEP_ROWS,
    modelsFolder: settings.REMUDA_MODELS,
    cacheFolder: settings.REMUDA_MODEL_CACHE,
    /** Value of a header "env:NAME" of a model's source. */
    secret: (name: string): string | undefined => env[name],
    models: settings.REMUDA_WORKER_MODELS,
    instances: settings.REMUDA_WORKER_INSTANCES,
    memoryBudgets: settings.REMUDA_WORKER_MEMORY_BUDGET ?? new Map<string, number>(),
    idleMs: settings.REMUDA_WORKER_IDLE_MS,
    host: settings.REMUDA_WORKER_HOST,
    port: settings.REMUDA_WORKER_PORT,
    bulkShare: settings.REMUDA_WORKER_BULK_SHARE,
    bulk: {
      jobs: settings.REMUDA_WORKER_BULK_JOBS,
      filesFolder: settings.REMUDA_FILES,
      /** References in lists may lead to files in these folders alone. */
      roots: settings.REMUDA_BULK_PATHS,
      /** As text: a coordinator is told it by message. */
      allowed: env.REMUDA_WEBHOOK_ALLOW ?? '',
    },
    lockMs: settings.REMUDA_WORKER_LOCK_MS,
    drainMs: settings.REMUDA_WORKER_DRAIN_MS,
    /** After the drain: how long a runner may take to release its models. */
    stopGraceMs: 3_000,
    stallMs: settings.REMUDA_WORKER_STALL_MS,
    sweeper: settings.REMUDA_WORKER_SWEEPER,
    devices: settings.REMUDA_WORKER_DEVICES,
    recordedMachine: settings.REMUDA_WORKER_PROBE ?? null,
    providerSwitch: settings.REMUDA_WORKER_PROVIDER_SWITCH,
    steward: settings.REMUDA_WORKER_STEWARD,
    webhooks: {
      deliver: settings.REMUDA_WORKER_WEBHOOKS,
      allowed: settings.REMUDA_WEBHOOK_ALLOW ?? NOTHING_ALLOWED,
      concurrency: settings.REMUDA_WORKER_WEBHOOK_CONCURRENCY,
      keptMs: settings.REMUDA_WORKER_WEBHOOK_KEEP_S * 1_000,
      schedule: settings.REMUDA_WORKER_WEBHOOK_SCHEDULE_S.map((seconds) => seconds * 1_000),
    },
    /** Of the runner processes. */
    runnerEnvironment: runnerEnvironment(env),
    logLevel: settings.REMUDA_LOG_LEVEL,
    logPretty: settings.REMUDA_LOG_PRETTY,
  };
}
