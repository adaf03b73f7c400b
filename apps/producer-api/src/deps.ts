/** What the routes are given: everything that thinks or knows a server stands in packages/core. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Access } from '@remuda/core/access/access';
import type { Sight } from '@remuda/core/access/caller';
import type { AllowedLocations } from '@remuda/core/bulk/allowed-locations';
import type { BulkUseCases } from '@remuda/core/bulk/bulk-use-cases';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { ModelAdmin } from '@remuda/core/models/edit-models';
import type { LifeLog } from '@remuda/core/observability/events';
import type { Logger } from '@remuda/core/observability/logger';
import type { Metrics } from '@remuda/core/observability/metrics';
import type { DeadLetters } from '@remuda/core/requests/dead-letters';
import type { RequestFilter, RequestUseCases } from '@remuda/core/requests/submission';
import type { AllowedAddresses } from '@remuda/core/webhooks/address-rules';
import type { WebhookUseCases } from '@remuda/core/webhooks/webhook-use-cases';
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { LetsIn } from './caller.js';
import type { Drain } from './drain.js';
import type { TlsFiles } from './tls.js';

type Answer<Name extends keyof RequestUseCases> = ReturnType<RequestUseCases[Name]>;

/** The use cases as routes have them: none that touches a request can be called without saying who asks. */
export type SeenUseCases = Omit<RequestUseCases, 'get' | 'waitFor' | 'result' | 'list' | 'cancel'> & {
  get(requestId: string, sight: Sight): Answer<'get'>;
  waitFor(requestId: string, ms: number, signal: AbortSignal | undefined, sight: Sight): Answer<'waitFor'>;
  result(requestId: string, sight: Sight): Answer<'result'>;
  list(filter: RequestFilter, sight: Sight): Answer<'list'>;
  cancel(requestId: string, sight: Sight): Answer<'cancel'>;
};

export interface ServerDeps {
  useCases: SeenUseCases;
  access: Access;
  /** Whose calls without an API key are taken; those may do everything. */
  readonly letsIn: LetsIn;
  /** The name or address that it was told to listen on. */
  host: string;
  /** Certificate and key, PEM; null: plain HTTP. */
  tls: TlsFiles | null;
  clock: Clock;
  admin: ModelAdmin;
  webhooks: WebhookUseCases;
  /** Where webhooks may be sent to beside public addresses. */
  webhookAllowed: AllowedAddresses;
  deadLetters: DeadLetters;
  /** Bulk jobs and their files. */
  bulk: BulkUseCases;
  /** Which inputs and outputs a bulk job may name. */
  locations: AllowedLocations;
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
  /** Largest file that is uploaded. */
  maxFileBytes: number;
}

/** A server whose queries and parameters are typed by their zod schemas. */
export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;
