/** Bulk jobs by way of the Redis of this machine, without an API between: the use cases that an API has, in this process. */
import { createBulkService } from '@remuda/core/bulk/bulk-service';
import type { BulkUseCases } from '@remuda/core/bulk/bulk-use-cases';
import { createBulkFiles } from '@remuda/core/bulk/files/bulk-files';
import { BulkJobStore } from '@remuda/core/bulk/job-store';
import { newTraceId } from '@remuda/core/ids';
import { lifeLog } from '@remuda/core/observability/events';
import { createLogger } from '@remuda/core/observability/logger';
import { createMetrics } from '@remuda/core/observability/metrics';
import { BulkQueue } from '@remuda/core/queue/bulk-queue';
import { createRequestUseCases } from '@remuda/core/requests/use-cases';
import { Keys, type Keyspace } from '@remuda/core/store/keys';
import { closeRedis, connectRedis } from '@remuda/core/store/redis';
import { BulkJobCreate } from '@remuda/schemas';
import { asCliError } from './as-cli-error.js';
import type { BulkAction, BulkControl } from './bulk-control.js';
import type { ServedModel } from './sample-runner.js';

export interface LocalControlOptions {
  redisUrl: string;
  keyspace: Keyspace;
  modelsFolder: string;
  filesFolder: string;
}

export interface LocalControl extends BulkControl {
  served(model: string, version?: string): Promise<ServedModel>;
  close(): Promise<void>;
}

export async function openLocalControl(options: LocalControlOptions): Promise<LocalControl> {
  const parts = partsOf(options);
  await parts.useCases.start();
  return controlOf(parts);
}

type Parts = ReturnType<typeof partsOf>;

function partsOf({ redisUrl, keyspace, modelsFolder, filesFolder }: LocalControlOptions) {
  // What goes wrong with Redis is told by the calls that need it.
  const onError = (): void => {};
  const redis = connectRedis({ url: redisUrl, role: 'worker', name: 'score', onError });
  const subscriber = connectRedis({ url: redisUrl, role: 'subscriber', name: 'score', onError });
  const logger = createLogger({ name: 'score', level: 'silent' });
  const keys = new Keys(keyspace);
  const useCases = createRequestUseCases({
    ...{ redis, subscriber, keys, logger, life: lifeLog(logger), metrics: createMetrics() },
    repository: modelsFolder,
  });
  const queue = new BulkQueue({ redis, keyPrefix: keyspace.prefix, onError });
  const bulk = createBulkService({
    ...{ queue, filesFolder },
    store: new BulkJobStore(redis, keys),
    files: createBulkFiles({ folder: filesFolder, redis, keys }),
    resolve: (ask) => useCases.resolve(ask),
  });
  return { redis, subscriber, useCases, queue, bulk };
}

function controlOf({ redis, subscriber, useCases, queue, bulk }: Parts): LocalControl {
  return {
    create: (wanted, jobId) =>
      asCliError(
        bulk.create(BulkJobCreate.parse(wanted), {
          tenant: 'default',
          keyId: null,
          traceId: newTraceId(),
          ...(jobId === undefined ? {} : { jobId }),
        }),
      ),
    get: (id) => bulk.get(id),
    act: (id, action) => asCliError(actionOf(bulk, action)(id)),
    async served(model, version) {
      const { signature } = await asCliError(useCases.resolve({ model, version, stickyKey: undefined }));
      const facts = useCases.fleetView.classFacts(signature.model, signature.version);
      const instances = facts.reduce((sum, one) => sum + one.instances, 0);
      return { signature, instances, devices: facts.filter(({ ready }) => ready > 0).length };
    },
    async close() {
      await useCases.stop();
      await queue.close();
      closeRedis(subscriber);
      closeRedis(redis);
    },
  };
}

function actionOf(bulk: BulkUseCases, action: BulkAction): (id: string) => ReturnType<BulkUseCases['get']> {
  if (action === 'retry-failed') return (id) => bulk.retryFailed(id);
  return (id) => bulk[action](id);
}
