/**
 * Tells the audit log of each call that may change something with the scope admin, before it is answered. Calls that were
 * refused for want of a key or a scope are not written there, or anybody could flood it; the metrics count them.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { statedActor } from './actor.js';
import type { ServerDeps } from './deps.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** What it was done to, beside the parts of the path: ids that were made. */
    auditTarget: Record<string, string> | null;
    /** Of the problem that it is answered with. */
    problemCode: string | null;
  }
}

const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

export function registerAudit(app: FastifyInstance, deps: ServerDeps): void {
  app.decorateRequest('auditTarget', null);
  app.decorateRequest('problemCode', null);
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (!isAudited(request)) return done();
    write(request, reply, deps).then(() => done(), done);
  });
}

function isAudited({ routeOptions, method, caller, is404 }: FastifyRequest): boolean {
  if (is404 || READS.has(method) || (routeOptions.config.scope ?? 'admin') !== 'admin') return false;
  return caller.scopes.has('admin');
}

/** A log that cannot be written must not hide what was done: the answer goes out, and the server's log has the entry. */
async function write(request: FastifyRequest, reply: FastifyReply, deps: ServerDeps): Promise<void> {
  const { access, clock, logger } = deps;
  const { caller, ip, method, routeOptions, params, auditTarget, problemCode, traceId } = request;
  const record = {
    at: new Date(clock.now()).toISOString(),
    key_id: caller.keyId,
    tenant: caller.tenant,
    address: ip,
    actor: statedActor(request),
    action: `${method} ${plainRoute(routeOptions.url ?? '')}`,
    target: { ...(params as Record<string, string>), ...auditTarget },
    status: reply.statusCode,
    code: problemCode,
    trace_id: traceId,
  };
  await access.audit(record).catch((err: unknown) => {
    logger.error({ err, event: 'audit', ...record }, 'the audit log could not be written');
  });
}

/** /v1/admin/models/:model(^[a-z]+)::load as /v1/admin/models/:model:load */
function plainRoute(url: string): string {
  return url.replace(/\(\^[^)]*\)/g, '').replace('::', ':');
}
