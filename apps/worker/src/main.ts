/** Entry of a worker process. Logs go to standard output; with an IPC channel it says when it is ready. */
import { runUntilSignal } from '@remuda/core/lifecycle/run-until-signal';
import { createLogger } from '@remuda/core/observability/logger';
import { workerConfig } from './config.js';
import { Worker } from './worker.js';

/** Beyond the drain: stopping runners, closing connections. */
const STOP_MARGIN_MS = 8_000;

try {
  const config = workerConfig(process.env);
  const logger = createLogger({ name: 'worker', level: config.logLevel, pretty: config.logPretty });
  const worker = new Worker({ config, logger });
  const announce = { name: 'worker', start: () => start(worker), stop: () => worker.stop() };
  await runUntilSignal(announce, {
    logger,
    exit: (code) => process.exit(code),
    hardLimitMs: config.drainMs + STOP_MARGIN_MS,
    host: process,
    stopWithParent: process.send !== undefined,
  });
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

async function start(worker: Worker): Promise<void> {
  await worker.start();
  process.send?.({ type: 'ready', url: worker.healthUrl });
}
