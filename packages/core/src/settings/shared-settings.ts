/** Settings that the API and the workers share; all parts of one fleet need the same values. */
import * as z from 'zod';
import { parseRedisAddress, withTls } from '../store/redis-address.js';

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
  REMUDA_MODELS: z.string().default('models').describe('Folder of the model repository.'),
  REMUDA_MODEL_CACHE: z
    .string()
    .default('.remuda/models')
    .describe('Folder to which workers fetch models from http(s) and S3. Put it on a disk with room.'),
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

/** The address of Redis with all that the settings say about it. @throws Error where a file cannot be read */
export function redisUrlOf(settings: z.output<typeof SharedSettings>): string {
  const url = withTls(settings.REDIS_URL, {
    ca: settings.REMUDA_REDIS_TLS_CA,
    cert: settings.REMUDA_REDIS_TLS_CERT,
    key: settings.REMUDA_REDIS_TLS_KEY,
  });
  parseRedisAddress(url);
  return url;
}
