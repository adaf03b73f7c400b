/** The API app as a library: for tests, the bench, and anything that embeds the API. */
export { ApiService, type ApiServiceOptions } from './api-service.js';
export type {} from './caller.js';
export { type ApiConfig, apiConfig } from './config.js';
export type { ServerDeps } from './deps.js';
export { Drain } from './drain.js';
export { createServer } from './server.js';
