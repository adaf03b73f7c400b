/** Entry of a coordinator that is real but for its door: see redis-door.fixture.ts. */
import { systemClock } from '../../lifecycle/clock.js';
import { lifeLog } from '../../observability/events.js';
import { createLogger } from '../../observability/logger.js';
import { Keys } from '../../store/keys.js';
import { closeRedis, connectRedis } from '../../store/redis.js';
import { webhookParts } from '../../webhooks/webhook-parts.js';
import { createBulkFiles } from '../files/bulk-files.js';
import { BulkJobStore } from '../job-store.js';
import { serveCoordinator } from './coordinator-child.js';
import { realTools } from './real-tools.js';
import { redisDoor } from './redis-door.fixture.js';

serveCoordinator(async ({ redisUrl: url, keyspace, filesFolder, logLevel: level }, signal) => {
  const onError = (): void => {};
  const redis = connectRedis({ url, role: 'worker', name: 'coordinator', onError });
  const subscriber = connectRedis({ url, role: 'subscriber', name: 'coordinator-sub', onError });
  const keys = new Keys(keyspace);
  const logger = createLogger({ name: 'coordinator', level });
  const clock = systemClock;
  const files = createBulkFiles({ folder: filesFolder, redis, keys, clock });
  const { outbox, queue } = webhookParts({ redis, keys, clock, life: lifeLog(logger), onError });
  return {
    deps: {
      ...{ store: new BulkJobStore(redis, keys), subscriber, outbox, clock, logger },
      door: redisDoor(redis, `${keyspace.prefix}:door`),
      tools: realTools({ files, signal, allowed: null, references: {} }),
      patienceMs: 500,
      tickMs: 25,
    },
    close: async () => {
      await queue.close();
      for (const one of [redis, subscriber]) closeRedis(one);
    },
  };
});
