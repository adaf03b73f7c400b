/** The runner process of a device, as this worker is configured; what becomes of it goes into log and metrics. */
import type { Device } from '@remuda/core/devices/machine';
import type { RemudaError } from '@remuda/core/errors';
import { RunnerProcess } from '@remuda/core/inference/runner-process';
import type { Logger } from '@remuda/core/observability/logger';
import type { Metrics } from '@remuda/core/observability/metrics';
import type { WorkerConfig } from './config.js';

export interface DeviceRunnerDeps {
  config: Pick<WorkerConfig, 'redisUrl' | 'keyspace' | 'bulkShare' | 'stopGraceMs' | 'runnerEnvironment'>;
  logger: Logger;
  metrics: Pick<Metrics, 'runnerRestarts'>;
  /** A model that was loaded could not be loaded again after a restart. */
  onModelLost(modelId: string, error: RemudaError): void;
}

export function newDeviceRunner(
  { device, device_class }: Device,
  { config, logger, metrics, onModelLost }: DeviceRunnerDeps,
): RunnerProcess {
  const log = logger.child({ device });
  return new RunnerProcess({
    device,
    store: { url: config.redisUrl, keyspace: config.keyspace },
    bulkShare: config.bulkShare,
    stopGraceMs: config.stopGraceMs,
    environment: config.runnerEnvironment,
    log: (level, fields, message) => log[level](fields, message),
    onLost: (end) => {
      log.warn({ ...end }, 'the runner was lost and is replaced');
      metrics.runnerRestarts.inc({ device_class, reason: end.reason });
    },
    onModelLost,
  });
}
