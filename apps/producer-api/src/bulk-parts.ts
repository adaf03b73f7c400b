/** What the API has for bulk jobs, put together: the file store with its sweeper, what a job may name, the jobs. */
import { AllowedLocations } from '@remuda/core/bulk/allowed-locations';
import type { BulkFiles, BulkUseCases } from '@remuda/core/bulk/bulk-use-cases';
import { createBulkFiles } from '@remuda/core/bulk/files/bulk-files';
import { FileSweeper } from '@remuda/core/bulk/files/file-sweeper';
import { RemudaError } from '@remuda/core/errors';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import type { Logger } from '@remuda/core/observability/logger';
import type { Metrics } from '@remuda/core/observability/metrics';
import { sparseErrors } from '@remuda/core/observability/sparse-log';
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
  /** Makes the use cases around the file store. */
  makeBulk?: (files: BulkFiles) => BulkUseCases;
}

export interface BulkParts {
  bulk: BulkUseCases;
  locations: AllowedLocations;
  /** Roles of the fleet that this API may have. */
  roles: Service[];
}

export function bulkParts(options: BulkPartsOptions): BulkParts {
  const { config, redis, keys, clock, logger, metrics, makeBulk = withoutJobs } = options;
  const guard = new StoreGuard(redis, metrics);
  const files = createBulkFiles({ folder: config.filesFolder, redis, keys, clock, guard });
  const onError = sparseErrors(logger, 'a turn of the file sweeper failed; the next one goes on');
  return {
    bulk: makeBulk(files),
    locations: new AllowedLocations({
      paths: config.bulkPaths,
      filesFolder: config.filesFolder,
      addresses: config.webhookAllowed,
    }),
    roles: config.maintenance ? [new FileSweeper({ files, redis, keys, clock, onError })] : [],
  };
}

function withoutJobs(files: BulkFiles): BulkUseCases {
  const refuse = (): never => {
    throw new RemudaError('unsupported_feature', 'this server runs no bulk jobs');
  };
  return {
    ...{ create: refuse, createOpenAi: refuse, get: refuse, list: refuse, pause: refuse, resume: refuse },
    ...{ cancel: refuse, retryFailed: refuse, setPriority: refuse, files },
  };
}
