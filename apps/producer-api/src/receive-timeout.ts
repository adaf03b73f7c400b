/**
 * How long a call may take to arrive, so that nobody holds connections by sending slowly. Node knows one limit for all;
 * here a file that comes as a stream may take as long as it needs, while something comes.
 */
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { FastifyInstance, FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its body is taken as it comes, however long that takes. */
    streamsBody?: boolean;
  }
}

/** The largest body over a slow line. */
const WHOLE_BODY_MS = 300_000;
/** A stream that has brought nothing for that long is cut off. */
const STALLED_MS = 120_000;

export interface ReceivingLimits {
  clock: Clock;
  /** After which a stream that brings nothing is cut off. */
  stalledMs?: number;
}

export function limitReceiving(app: FastifyInstance, limits: ReceivingLimits): void {
  app.addHook('onRequest', (request, _reply, done) => {
    if (hasBody(request)) limit(app, request, limits);
    done();
  });
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function limit(
  app: FastifyInstance,
  { raw, routeOptions }: FastifyRequest,
  { clock, stalledMs = STALLED_MS }: ReceivingLimits,
): void {
  // As Node itself would end it: answered with 408, and closed.
  const end = (): void => {
    const error = Object.assign(new Error('the call took too long to arrive'), {
      code: 'ERR_HTTP_REQUEST_TIMEOUT',
    });
    app.server.emit('clientError', error, raw.socket);
  };
  if (!routeOptions.config.streamsBody) {
    raw.once('close', clock.after(WHOLE_BODY_MS, end));
    return;
  }
  raw.setTimeout(stalledMs, end);
  raw.once('close', () => raw.socket.setTimeout(0));
}
