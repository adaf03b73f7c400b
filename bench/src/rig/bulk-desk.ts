/** Bulk jobs of a fleet, created and asked after by the use cases that the API has, without HTTP between. */
import { createBulkService } from '@remuda/core/bulk/bulk-service';
import { createBulkFiles } from '@remuda/core/bulk/files/bulk-files';
import { BulkJobStore } from '@remuda/core/bulk/job-store';
import { newTraceId } from '@remuda/core/ids';
import { lifeLog } from '@remuda/core/observability/events';
import { silentLogger } from '@remuda/core/observability/logger';
import { createMetrics } from '@remuda/core/observability/metrics';
import { BulkQueue } from '@remuda/core/queue/bulk-queue';
import { createRequestUseCases } from '@remuda/core/requests/use-cases';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis } from '@remuda/core/store/redis';
import { type BulkJob, BulkJobCreate, type BulkJobCreateInput } from '@remuda/schemas';

export interface BulkDesk {
  create(wanted: BulkJobCreateInput): Promise<BulkJob>;
  get(id: string): Promise<BulkJob>;
  cancel(id: string): Promise<BulkJob>;
  close(): Promise<void>;
}

export interface BulkPlace {
  redisUrl: string;
  keyPrefix: string;
  /** REMUDA_MODELS and REMUDA_FILES of the workers. */
  models: string;
  files: string;
}

/** Its calls wait while Redis is away. */
export async function openBulkDesk({ redisUrl, keyPrefix, models, files }: BulkPlace): Promise<BulkDesk> {
  const onError = (): void => {};
  const redis = connectRedis({ url: redisUrl, role: 'worker', name: 'bench-bulk', onError });
  const subscriber = connectRedis({ url: redisUrl, role: 'subscriber', name: 'bench-bulk', onError });
  const keys = new Keys({ prefix: keyPrefix, shards: 1 });
  const useCases = createRequestUseCases({
    ...{ redis, subscriber, keys, logger: silentLogger, life: lifeLog(silentLogger), repository: models },
    metrics: createMetrics({ processMetrics: false }),
  });
  await useCases.start();
  const queue = new BulkQueue({ redis, keyPrefix, onError });
  const bulk = createBulkService({
    ...{ queue, filesFolder: files },
    store: new BulkJobStore(redis, keys),
    files: createBulkFiles({ folder: files, redis, keys }),
    resolve: (ask) => useCases.resolve(ask),
  });
  return {
    create: (wanted) =>
      bulk.create(BulkJobCreate.parse(wanted), { tenant: 'default', keyId: null, traceId: newTraceId() }),
    get: (id) => bulk.get(id),
    cancel: (id) => bulk.cancel(id),
    async close() {
      await useCases.stop();
      await queue.close();
      closeRedis(subscriber);
      closeRedis(redis);
    },
  };
}
