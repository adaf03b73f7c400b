/**
 * Refuses a submission before its body is read, where nothing that could stand in it would let it in: at twice the
 * capacity that is every second call, and what it costs is taken from those that are accepted.
 */
import type { Lane } from '@remuda/schemas';
import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import type { ServerDeps } from './deps.js';

/** @param lane of the route, where its path names the model; without: only what concerns every model */
export function refuseWhereFull(
  { useCases }: Pick<ServerDeps, 'useCases'>,
  lane?: Lane,
): onRequestHookHandler {
  return (request: FastifyRequest, _reply, done) => {
    const model = lane && (request.params as { model?: string }).model;
    done(useCases.refusal(model, lane ?? 'interactive', request.caller.tenant));
  };
}
