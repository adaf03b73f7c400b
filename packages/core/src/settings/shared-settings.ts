/** Settings that the API and the workers share; all parts of one fleet need the same values. */
import * as z from 'zod';
import { PRIORITY_STEP_ROWS } from '../fairness/fair-tags.js';
import type { Keyspace } from '../store/keys.js';
import { parseRedisAddress, withTls } from '../store/redis-address.js';
import { parseAllowed } from '../webhooks/address-rules.js';

const file = z.string().min(1).optional();

export const SharedSettings = z.object({
  REDIS_URL: z
    .string()
    .superRefine((url, context) => {
      try {
        parseRedisAddress(url);
      } catch (error) {
        context.addIssue({ code: 'custom', message: (error as Error).message });
      }
    })
    .default('redis://127.0.0.1:6379')
    .describe('The Redis of the fleet; docs/redis.md has the forms for TLS, Sentinel and Cluster.'),
  REMUDA_REDIS_TLS_CA: file.describe(
    'With rediss://: file of the certificates to trust; default those of Node.',
  ),
  REMUDA_REDIS_TLS_CERT: file.describe(
    'With rediss://: file of the certificate to show, where Redis asks for one.',
  ),
  REMUDA_REDIS_TLS_KEY: file.describe('With rediss://: file of the key of that certificate.'),
  REMUDA_KEY_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .default('remuda')
    .describe('First part of every key. Change it to run several fleets on one Redis.'),
  REMUDA_RECORD_SHARDS: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_024)
    .default(1)
    .describe('Slots that requests are spread over: 1 on a single Redis, some tens on a Cluster.'),
  REMUDA_DEAD_LETTER_TTL_S: z.coerce
    .number()
    .int()
    .min(60)
    .max(90 * 24 * 3600)
    .default(7 * 24 * 3600)
    .describe('Seconds that requests which were given up are kept with their inputs, to be run again.'),
  REMUDA_DEAD_LETTERS: z.coerce
    .number()
    .int()
    .min(0)
    .max(10_000_000)
    .default(10_000)
    .describe('Most of them that are kept, of each record shard; the oldest go first. 0 keeps none.'),
  REMUDA_DEAD_LETTER_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .default(256 * 1024 * 1024)
    .describe('Most bytes of their inputs. Give it more where Redis has room and inputs are large.'),
  REMUDA_PRIORITY_STEP_ROWS: z.coerce
    .number()
    .int()
    .min(0)
    .max(1_000_000)
    .default(PRIORITY_STEP_ROWS)
    .describe(
      'Rows that a level of priority may overtake of what its tenant has waiting. Lower it where rows are slow.',
    ),
  REMUDA_MODELS: z.string().default('models').describe('Folder of the model repository.'),
  REMUDA_MODEL_CACHE: z
    .string()
    .default('.remuda/models')
    .describe('Folder to which workers fetch models from http(s) and S3. Put it on a disk with room.'),
  REMUDA_FILES: z
    .string()
    .default('.remuda/files')
    .describe(
      'Folder for files of bulk jobs. Every API and every worker that coordinates bulk jobs must see the same one.',
    ),
  REMUDA_BULK_PATHS: z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter(Boolean),
    )
    .describe(
      'Folders whose files bulk jobs may read and write by path, separated by commas. Whoever may submit reads all of them.',
    ),
  REMUDA_WEBHOOK_ALLOW: z
    .string()
    .transform((text, context) => {
      try {
        return parseAllowed(text);
      } catch (error) {
        context.addIssue({ code: 'custom', message: (error as Error).message });
        return z.NEVER;
      }
    })
    .optional()
    .describe(
      'Addresses, ranges and host names that webhooks may be sent to although they are not public: 127.0.0.1,10.1.0.0/16,sink.internal. Set it for receivers inside.',
    ),
  REMUDA_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Lowest level that is logged; warn turns off the life events of requests.'),
  REMUDA_LOG_PRETTY: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .default(false)
    .describe('Short lines for people in place of JSON.'),
});

type Shared = z.infer<typeof SharedSettings>;

/** How requests lie in Redis. */
export function keyspaceOf(settings: Shared): Keyspace {
  return {
    prefix: settings.REMUDA_KEY_PREFIX,
    shards: settings.REMUDA_RECORD_SHARDS,
    letters: {
      keptMs: settings.REMUDA_DEAD_LETTER_TTL_S * 1000,
      most: settings.REMUDA_DEAD_LETTERS,
      mostBytes: settings.REMUDA_DEAD_LETTER_BYTES,
    },
  };
}

/** The address of Redis with all that the settings say about it. @throws Error where a file cannot be read */
export function redisUrlOf(settings: Shared): string {
  const url = withTls(settings.REDIS_URL, {
    ca: settings.REMUDA_REDIS_TLS_CA,
    cert: settings.REMUDA_REDIS_TLS_CERT,
    key: settings.REMUDA_REDIS_TLS_KEY,
  });
  parseRedisAddress(url);
  return url;
}
