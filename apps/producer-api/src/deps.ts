/** What the routes are given: everything that thinks or knows a server stands in packages/core. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ModelAdmin } from '@remuda/core/models/edit-models';
import type { LifeLog } from '@remuda/core/observability/events';
import type { Logger } from '@remuda/core/observability/logger';
import type { Metrics } from '@remuda/core/observability/metrics';
import type { DeadLetters } from '@remuda/core/requests/dead-letters';
import type { RequestUseCases } from '@remuda/core/requests/submission';
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Drain } from './drain.js';

export interface ServerDeps {
  useCases: RequestUseCases;
  admin: ModelAdmin;
  deadLetters: DeadLetters;
  /** Rejects, with the reason, when Redis does not answer. */
  ping(): Promise<void>;
  logger: Logger;
  life: LifeLog;
  metrics: Metrics;
  drain: Drain;
  /** Largest body that is taken. */
  maxBodyBytes: number;
  /** Of a JSON body: less, since parsing it holds up everything else. */
  maxJsonBytes: number;
}

/** A server whose queries and parameters are typed by their zod schemas. */
export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;
