/** Entry of an API process. Logs go to standard output; with an IPC channel it says when it is ready. */
import { runUntilSignal } from '@remuda/core/lifecycle/run-until-signal';
import { createLogger } from '@remuda/core/observability/logger';
import { ApiService } from './api-service.js';
import { apiConfig } from './config.js';

/** Beyond the drain and the calls under way: closing connections. */
const STOP_MARGIN_MS = 5_000;

try {
  const config = apiConfig(process.env);
  const logger = createLogger({ name: 'api', level: config.logLevel, pretty: config.logPretty });
  const api = new ApiService({ config, logger });
  const announce = { name: 'api', start: () => start(api), stop: () => api.stop() };
  await runUntilSignal(announce, {
    logger,
    exit: (code) => process.exit(code),
    hardLimitMs: config.drainDelayMs + config.stopMs + STOP_MARGIN_MS,
    host: process,
    stopWithParent: process.send !== undefined,
  });
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

async function start(api: ApiService): Promise<void> {
  await api.start();
  process.send?.({ type: 'ready', url: api.url });
}
