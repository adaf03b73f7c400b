/** Entry of the coordinator's process: the coordinator with real requests, readers and writers. */
import { lifeLog } from '../../observability/events.js';
import { createLogger } from '../../observability/logger.js';
import { createMetrics } from '../../observability/metrics.js';
import { sparseErrors } from '../../observability/sparse-log.js';
import { createRequestUseCases } from '../../requests/use-cases.js';
import { Keys } from '../../store/keys.js';
import { closeRedis, connectRedis, type Redis, type RedisRole, waitUntilReady } from '../../store/redis.js';
import { StoreClock } from '../../store/store-clock.js';
import { parseAllowed } from '../../webhooks/address-rules.js';
import { webhookParts } from '../../webhooks/webhook-parts.js';
import { createChunkDoor } from '../create-chunk-door.js';
import { createBulkFiles } from '../files/bulk-files.js';
import { BulkJobStore } from '../job-store.js';
import { serveCoordinator } from './coordinator-child.js';
import { realTools } from './real-tools.js';

const TELL_REDIS_AWAY_MS = 5_000;
/** Chunks are bounded by the window of their job, and must not be refused for what callers have waiting. */
const NO_LIMITS = { requests: 1_000_000, rows: null, bytes: null, waitS: null };

const isReady = (redis: Redis): Promise<boolean> =>
  waitUntilReady(redis, TELL_REDIS_AWAY_MS).then(
    () => true,
    () => false,
  );

serveCoordinator(async (init, leave) => {
  const logger = createLogger({ name: 'coordinator', level: init.logLevel, pretty: init.logPretty });
  const onError = sparseErrors(logger, 'Redis; it is tried again');
  const connect = (role: RedisRole) =>
    connectRedis({ url: init.redisUrl, role, name: `coordinator-${process.pid}-${role}`, onError });
  // Chunks are sent by a connection that fails fast: what fails is tried again here.
  const [api, patient, subscriber, heard] = [
    connect('api'),
    connect('worker'),
    connect('subscriber'),
    connect('subscriber'),
  ];
  // However long it takes: a Redis that is away is no fault of the job.
  while (!(await isReady(api)) && !leave.aborted)
    logger.warn({ batch_id: init.jobId }, 'Redis is away; the coordinator waits for it');
  if (leave.aborted) throw new Error('the worker stops before Redis is back');
  const keys = new Keys(init.keyspace);
  const clock = new StoreClock({ redis: patient });
  await clock.start();
  const metrics = createMetrics({ processMetrics: false });
  // The lives of chunks are told by the workers that run them.
  const life = lifeLog(logger.child({}), { sample: 0 });
  const useCases = createRequestUseCases({
    ...{ redis: api, subscriber, keys, repository: init.modelsFolder, logger, life, metrics, clock },
    ...{ priorityStepRows: init.priorityStepRows, limits: { ...NO_LIMITS, ...init.limits } },
  });
  await useCases.start();
  const files = createBulkFiles({ folder: init.filesFolder, redis: patient, keys, clock });
  const { outbox, queue } = webhookParts({ redis: patient, keys, clock, life: lifeLog(logger), onError });
  const { roots, allowed, filesFolder } = init;
  return {
    deps: {
      store: new BulkJobStore(patient, keys),
      subscriber: heard,
      door: createChunkDoor({ useCases, fleet: useCases.fleetView, store: useCases.store }),
      tools: realTools({
        ...{ files, signal: leave, references: { roots, allowed, ...(roots && { closed: filesFolder }) } },
        allowed: allowed === null ? null : parseAllowed(allowed),
      }),
      ...{ outbox, clock, logger },
    },
    close: async () => {
      await useCases.stop();
      await queue.close();
      await clock.stop();
      for (const redis of [api, patient, subscriber, heard]) closeRedis(redis);
    },
  };
});
