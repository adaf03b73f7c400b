/** The worker app as a library: for tests, the bench, and anything that embeds a worker. */
export { BulkHost, type BulkHostOptions } from './bulk-host.js';
export { type WorkerConfig, workerConfig } from './config.js';
export { LightRunner, type LightRunnerOptions } from './light-runner.js';
export { ModelConsumers, type ModelConsumersOptions } from './model-consumers.js';
export { Worker, type WorkerOptions } from './worker.js';
