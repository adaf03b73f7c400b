/** The caller of each call, kept on the request. Without keys everybody is the same one. */
import { type Caller, OPEN_CALLER } from '@remuda/core/access/caller';
import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
  }
}

export function registerCaller(app: FastifyInstance): void {
  app.decorateRequest('caller', { getter: () => OPEN_CALLER });
}
