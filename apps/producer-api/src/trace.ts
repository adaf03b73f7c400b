/** The trace of a call: taken from traceparent (W3C) or made, kept on the request, and given back with the answer. */
import { newTraceId, traceIdOf } from '@remuda/core/ids';
import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    traceId: string;
    /** Whether the caller gave the trace. */
    traceGiven: boolean;
  }
}

/** Span ids need to differ within a trace only: a number for each call behind what tells processes apart. */
const PROCESS = newTraceId().slice(0, 8);
let calls = 0;

export function registerTrace(app: FastifyInstance): void {
  app.decorateRequest('traceId', '');
  app.decorateRequest('traceGiven', false);
  app.addHook('onRequest', (request, reply, done) => {
    const given = traceIdOf(request.headers.traceparent as string | undefined);
    request.traceId = given ?? newTraceId();
    request.traceGiven = given !== undefined;
    calls = (calls + 1) >>> 0;
    const span = `${PROCESS}${calls.toString(16).padStart(8, '0')}`;
    reply.header('traceparent', `00-${request.traceId}-${span}-01`);
    // An answer about one InferenceRequest replaces it by that request's id.
    reply.header('x-request-id', request.traceId);
    done();
  });
}
