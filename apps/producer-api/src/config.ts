/** Every setting of the API, read from the environment once. The only file of this app that reads it. */
import { readSettings } from '@remuda/core/settings/settings';
import { keyspaceOf, redisUrlOf, SharedSettings } from '@remuda/core/settings/shared-settings';
import { NOTHING_ALLOWED } from '@remuda/core/webhooks/address-rules';
import * as z from 'zod';

const whole = (min: number, max: number) => z.coerce.number().int().min(min).max(max);

export const ApiSettings = SharedSettings.extend({
  REMUDA_API_HOST: z
    .string()
    .default('127.0.0.1')
    .describe('Address to listen on. Set 0.0.0.0 in a container or to be reached from other machines.'),
  REMUDA_API_AUTH: z
    .enum(['auto', 'keys', 'open'])
    .default('auto')
    .describe(
      'Who is let in. keys: who has an API key. open: everybody. auto: everybody on a loopback address, else keys.',
    ),
  REMUDA_API_TLS_CERT: z
    .string()
    .default('')
    .describe('File with the certificate and its chain (PEM), for HTTPS. It is read anew when it changes.'),
  REMUDA_API_TLS_KEY: z.string().default('').describe('File with the private key of the certificate (PEM).'),
  REMUDA_API_PORT: whole(0, 65_535).default(8080).describe('Port to listen on; 0 takes a free one.'),
  REMUDA_API_MAX_BODY_BYTES: whole(1_024, 1_073_741_824)
    .default(64 * 1024 * 1024)
    .describe(
      'Largest body that is taken. Raise it for larger tensors; each call under way may hold this much memory.',
    ),
  REMUDA_API_MAX_JSON_BYTES: whole(1_024, 1_073_741_824)
    .default(16 * 1024 * 1024)
    .describe(
      'Largest JSON body. Parsing one holds up every other call, at worst some seconds; binary bodies do not.',
    ),
  REMUDA_API_MAX_FILE_BYTES: whole(1_024, Number.MAX_SAFE_INTEGER)
    .default(10 * 1024 ** 3)
    .describe('Largest file that is taken for bulk jobs. It goes to the disk of REMUDA_FILES as it comes.'),
  REMUDA_API_RESULT_TTL_S: whole(1, 7 * 24 * 3600)
    .default(3_600)
    .describe(
      'Seconds that results are kept after the end where a request does not say. Lower it to save Redis memory.',
    ),
  REMUDA_API_IDEMPOTENCY_TTL_S: whole(60, 30 * 24 * 3600)
    .default(86_400)
    .describe(
      'Seconds that an Idempotency-Key is remembered, from its first call. Each takes 1-2 KB of Redis; lower it to save that.',
    ),
  REMUDA_API_MAX_QUEUE_DEPTH: whole(1, 10_000_000)
    .default(50_000)
    .describe(
      'Most requests of one queue that have not ended; more are refused with 429. Raise it for long backlogs.',
    ),
  REMUDA_API_MAX_QUEUE_ROWS: whole(0, 1_000_000_000)
    .default(5_000_000)
    .describe(
      'The same for their rows; 0: no limit. Lower it where few requests of many rows hold up others.',
    ),
  REMUDA_API_MAX_QUEUE_BYTES: whole(0, Number.MAX_SAFE_INTEGER)
    .default(2 * 1024 ** 3)
    .describe('The same for the bytes of their inputs; 0: no limit. Keep it well below the memory of Redis.'),
  REMUDA_API_MAX_QUEUE_WAIT_S: z.coerce
    .number()
    .min(0)
    .max(7 * 24 * 3600)
    .default(0)
    .describe(
      'Seconds that a new request may be expected to wait; beyond that 429. 0: no limit. Set it to what callers bear.',
    ),
  REMUDA_API_REFUSE_HOPELESS: z
    .enum(['true', 'false'])
    .default('true')
    .describe(
      'Whether a request that cannot be expected to meet its deadline is refused (429 deadline_unreachable). false accepts it.',
    ),
  REMUDA_API_DRAIN_DELAY_MS: whole(0, 600_000)
    .default(0)
    .describe(
      'On SIGTERM, how long to answer on while /readyz says 503. Set it to what a load balancer takes to notice.',
    ),
  REMUDA_API_STOP_MS: whole(1_000, 600_000)
    .default(15_000)
    .describe('Behind that, how long calls under way may take before their connections are cut.'),
  REMUDA_API_WAIT_REPLICAS: whole(0, 16)
    .default(0)
    .describe(
      'Replicas of Redis that must have a request before it is answered with 202, so that a failover cannot lose it. Not with a Cluster.',
    ),
  REMUDA_API_WAIT_REPLICAS_MS: whole(10, 1_000)
    .default(500)
    .describe('How long they may take; then the request is refused with 503 and withdrawn.'),
  REMUDA_API_MAINTENANCE: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .default(true)
    .describe(
      'Whether this API may be the process that keeps deadlines and repairs lost jobs; one of all APIs and workers is at a time.',
    ),
});
export type ApiConfig = ReturnType<typeof apiConfig>;

/** The settings of the API, by purpose. @throws Error that names each wrong or unknown variable */
export function apiConfig(env: NodeJS.ProcessEnv) {
  const settings = readSettings(ApiSettings, env);
  if (settings.REMUDA_API_WAIT_REPLICAS > 0 && settings.REDIS_URL.includes('+cluster://'))
    throw new Error(
      'The environment is not right:\n  REMUDA_API_WAIT_REPLICAS is not for a Cluster: record and job of a request lie on different servers',
    );
  return {
    redisUrl: redisUrlOf(settings),
    keyspace: keyspaceOf(settings),
    priorityStepRows: settings.REMUDA_PRIORITY_STEP_ROWS,
    modelsFolder: settings.REMUDA_MODELS,
    host: settings.REMUDA_API_HOST,
    auth: settings.REMUDA_API_AUTH,
    tls: tlsPaths(settings.REMUDA_API_TLS_CERT, settings.REMUDA_API_TLS_KEY),
    port: settings.REMUDA_API_PORT,
    maxBodyBytes: settings.REMUDA_API_MAX_BODY_BYTES,
    maxFileBytes: settings.REMUDA_API_MAX_FILE_BYTES,
    filesFolder: settings.REMUDA_FILES,
    bulkPaths: settings.REMUDA_BULK_PATHS,
    maxJsonBytes: Math.min(settings.REMUDA_API_MAX_JSON_BYTES, settings.REMUDA_API_MAX_BODY_BYTES),
    resultTtlS: settings.REMUDA_API_RESULT_TTL_S,
    idempotencyTtlS: settings.REMUDA_API_IDEMPOTENCY_TTL_S,
    limits: {
      requests: settings.REMUDA_API_MAX_QUEUE_DEPTH,
      rows: settings.REMUDA_API_MAX_QUEUE_ROWS || null,
      bytes: settings.REMUDA_API_MAX_QUEUE_BYTES || null,
      waitS: settings.REMUDA_API_MAX_QUEUE_WAIT_S || null,
    },
    refuseHopeless: settings.REMUDA_API_REFUSE_HOPELESS === 'true',
    drainDelayMs: settings.REMUDA_API_DRAIN_DELAY_MS,
    stopMs: settings.REMUDA_API_STOP_MS,
    waitReplicas: settings.REMUDA_API_WAIT_REPLICAS,
    waitReplicasMs: settings.REMUDA_API_WAIT_REPLICAS_MS,
    maintenance: settings.REMUDA_API_MAINTENANCE,
    webhookAllowed: settings.REMUDA_WEBHOOK_ALLOW ?? NOTHING_ALLOWED,
    logLevel: settings.REMUDA_LOG_LEVEL,
    logPretty: settings.REMUDA_LOG_PRETTY,
  };
}

/** Two files or none. */
function tlsPaths(cert: string, key: string): { cert: string; key: string } | null {
  if (cert === '' && key === '') return null;
  if (cert !== '' && key !== '') return { cert, key };
  const missing = cert === '' ? 'REMUDA_API_TLS_CERT' : 'REMUDA_API_TLS_KEY';
  throw new Error(
    `The environment is not right:\n  ${missing}: HTTPS needs a certificate and its key: set both`,
  );
}
