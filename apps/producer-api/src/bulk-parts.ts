/** What the API has for bulk jobs, put together: the file store with its sweeper, what a job may name, the jobs. */
import { resolve as absolute } from 'node:path';
import { AllowedLocations } from '@remuda/core/bulk/allowed-locations';
import { type BulkServiceDeps, createBulkService } from '@remuda/core/bulk/bulk-service';
import type { BulkFiles, BulkUseCases } from '@remuda/core/bulk/bulk-use-cases';
import { createBulkFiles } from '@remuda/core/bulk/files/bulk-files';
import { fileReaders } from '@remuda/core/bulk/files/file-readers';
import { FileSweeper } from '@remuda/core/bulk/files/file-sweeper';
import { BulkJobStore } from '@remuda/core/bulk/job-store';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import type { Logger } from '@remuda/core/observability/logger';
import type { Metrics } from '@remuda/core/observability/metrics';
import { sparseErrors } from '@remuda/core/observability/sparse-log';
import { BulkQueue } from '@remuda/core/queue/bulk-queue';
import { StoreGuard } from '@remuda/core/requests/store-guard';
import type { Keys } from '@remuda/core/store/keys';
import type { Redis } from '@remuda/core/store/redis';
import type { ApiConfig } from './config.js';

export interface BulkPartsOptions {
  config: ApiConfig;
  redis: Redis;
  keys: Keys;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Which version of a model is meant. */
  resolve: BulkServiceDeps['resolve'];
  /** Makes the use cases around the file store; default: those of the fleet. */
  makeBulk?: (files: BulkFiles) => BulkUseCases;
}

export interface BulkParts {
  bulk: BulkUseCases;
  locations: AllowedLocations;
  /** Roles of the fleet that this API may have. */
  roles: Service[];
  close(): Promise<void>;
}

export function bulkParts(options: BulkPartsOptions): BulkParts {
  const { config, redis, keys, clock, logger, metrics, resolve, makeBulk } = options;
  const filesFolder = absolute(config.filesFolder);
  const guard = new StoreGuard(redis, metrics);
  const store = new BulkJobStore(redis, keys);
  const readers = () => fileReaders(store);
  const files = createBulkFiles({ folder: filesFolder, redis, keys, clock, guard, readers });
  const queue = new BulkQueue({
    ...{ redis, keyPrefix: keys.space.prefix },
    onError: sparseErrors(logger, 'the queue of bulk jobs failed; it is tried again'),
  });
  const onError = sparseErrors(logger, 'a turn of the file sweeper failed; the next one goes on');
  return {
    bulk: makeBulk?.(files) ?? createBulkService({ store, queue, files, filesFolder, resolve, guard, clock }),
    locations: new AllowedLocations({
      ...{ paths: config.bulkPaths, filesFolder, addresses: config.webhookAllowed },
    }),
    roles: config.maintenance ? [new FileSweeper({ files, redis, keys, clock, onError })] : [],
    close: () => queue.close(),
  };
}
