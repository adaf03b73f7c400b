/** Tells log and metrics of a request that was not accepted, and the log of every error that should not have happened. */
import type { Problem } from '@remuda/schemas';
import type { FastifyRequest } from 'fastify';
import type { ServerDeps } from './deps.js';

type Tellers = Pick<ServerDeps, 'life' | 'metrics' | 'logger'>;

export function tellRefusal(
  { code, status, errors }: Problem,
  cause: unknown,
  { traceId }: FastifyRequest,
  { life, metrics, logger }: Tellers,
): void {
  metrics.refused.inc({ code });
  life.refused({ trace_id: traceId, request_id: null, code, status, path: errors?.[0]?.path ?? '' });
  if (code === 'internal') tellInternal(cause, traceId, logger);
}

export function tellInternal(cause: unknown, traceId: string, logger: Tellers['logger']): void {
  logger.error({ err: cause, trace_id: traceId }, 'error that should not happen');
}
