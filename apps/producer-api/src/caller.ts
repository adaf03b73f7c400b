/**
 * Who makes each call: the API key behind `Authorization: Bearer`, found before anything of the call is read, and whether
 * it may. Each route says in its config which scope it needs; one that says nothing needs `admin`, so that forgetting it
 * opens nothing. A key that was seen before costs no question to Redis, unless it has a rate.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Access } from '@remuda/core/access/access';
import type { RateVerdict } from '@remuda/core/access/call-rate';
import { type Caller, OPEN_CALLER } from '@remuda/core/access/caller';
import { RemudaError } from '@remuda/core/errors';
import type { Quota } from '@remuda/core/requests/quota';
import { DEFAULT_TENANT, type Scope } from '@remuda/schemas';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { foreignSign } from './local-calls.js';
import { addRateLimitFields } from './rate-limit-fields.js';

/** Who is let in without a key: nobody, calls of this machine, everybody. */
export type LetsIn = 'keys' | 'local' | 'everybody';

/** What a route needs of who calls it; public: nothing. */
export type Need = Scope | 'public';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
  }
  interface FastifyContextConfig {
    /** Default: admin. */
    scope?: Need;
  }
  interface FastifyInstance {
    /** What each route says that it needs, by "METHOD /path". */
    declaredScopes: Map<string, Need | undefined>;
  }
}

export interface CallerOptions {
  access: Pick<Access, 'authenticate' | 'used' | 'countCall'>;
  /** Whether calls without a key are taken too, which may do everything. */
  readonly letsIn: LetsIn;
  /** The name or address that it was told to listen on. */
  host: string;
}

/** Of what is public. */
const NOBODY: Caller = { keyId: null, tenant: DEFAULT_TENANT, scopes: new Set() };
/** The pages of /docs come with a plugin that knows no scopes. They say what /openapi.json says, which is public. */
const DOCS = /^\/docs(\/|$)/;

export function registerCaller(app: FastifyInstance, options: CallerOptions): void {
  app.decorateRequest('caller', null as unknown as Caller);
  app.decorate('declaredScopes', new Map());
  app.addHook('onRoute', (route) => {
    if (DOCS.test(route.url)) route.config = { ...route.config, scope: 'public' };
    for (const method of [route.method].flat())
      app.declaredScopes.set(`${method} ${route.url}`, route.config?.scope);
  });
  app.addHook('onRequest', (request, reply, done) => {
    request.caller = NOBODY;
    const need = request.is404 ? 'public' : (request.routeOptions.config.scope ?? 'admin');
    if (need === 'public') return done();
    let caller: Caller | Promise<Caller>;
    try {
      caller = callerOf(request.headers, options);
    } catch (error) {
      return done(error as Error);
    }
    if (!(caller instanceof Promise) && !caller.rateLimit) {
      done(admit(caller, need, request, options));
      return;
    }
    admitLater(caller, need, request, reply, options).then(done, done);
  });
}

const BEARER = /^bearer +(\S+) *$/i;
const OURS = /^bearer +rmd_/i;

/** @throws RemudaError unauthorized */
function callerOf(
  headers: IncomingHttpHeaders,
  { access, letsIn, host }: CallerOptions,
): Caller | Promise<Caller> {
  const { authorization: header } = headers;
  // What an open server is told that is no key of ours is meant for somebody before it.
  if (letsIn !== 'keys' && (header === undefined || !OURS.test(header))) {
    const foreign = letsIn === 'local' ? foreignSign(headers, host) : undefined;
    if (foreign === undefined) return OPEN_CALLER;
    const message = `without an API key this server takes calls that are made to it on this machine, not "${foreign}": send a key, or set REMUDA_API_AUTH=open`;
    throw new RemudaError('unauthorized', message);
  }
  if (header === undefined) {
    throw new RemudaError('unauthorized', 'this needs an API key: send "Authorization: Bearer rmd_…"');
  }
  const [, text] = BEARER.exec(header) ?? [];
  if (text === undefined) {
    const message = 'expected "Authorization: Bearer rmd_…", received a header of another form';
    throw new RemudaError('unauthorized', message, { given: true });
  }
  return access.authenticate(text);
}

/**
 * Of a call that was held: its key may have been revoked or have expired meanwhile.
 * @throws RemudaError unauthorized, store_unavailable
 */
export async function stillLetIn(
  { caller, headers }: Pick<FastifyRequest, 'caller' | 'headers'>,
  options: CallerOptions,
): Promise<void> {
  if (caller.keyId !== null) await callerOf(headers, options);
}

/** Whether an error of a held call says that its key is not taken any more: nothing is wrong with the server then. */
export function isNoLongerLetIn(error: unknown): boolean {
  return error instanceof RemudaError && error.code === 'unauthorized';
}

/** Returns why not. */
function admit(
  caller: Caller,
  need: Scope,
  request: FastifyRequest,
  { access }: CallerOptions,
): Error | undefined {
  request.caller = caller;
  if (caller.keyId !== null) access.used(caller.keyId);
  return caller.scopes.has(need) ? undefined : forbidden(caller, need);
}

async function admitLater(
  found: Caller | Promise<Caller>,
  need: Scope,
  request: FastifyRequest,
  reply: FastifyReply,
  options: CallerOptions,
): Promise<Error | undefined> {
  const caller = await found;
  const refused = admit(caller, need, request, options);
  if (refused || !caller.rateLimit) return refused;
  const verdict = await options.access.countCall(caller);
  const quota = rateQuota(caller.rateLimit, verdict);
  // A refusal has it in its details, and is told by who answers with it.
  if (!verdict.allowed) return tooFast(caller, verdict, quota);
  addRateLimitFields(reply, [quota]);
  return undefined;
}

export function forbidden({ keyId, scopes }: Caller, need: Scope): RemudaError {
  const message = `this needs an API key with the scope "${need}"; key ${keyId} has ${[...scopes].join(', ')}`;
  return new RemudaError('forbidden', message, { scope: need });
}

function tooFast({ keyId, rateLimit }: Caller, { retryAfterS }: RateVerdict, quota: Quota): RemudaError {
  const allowed = `${rateLimit?.requests_per_second} calls a second, ${rateLimit?.burst} at once`;
  const message = `API key ${keyId} may make ${allowed}: call again in ${Math.ceil(retryAfterS)} s`;
  return new RemudaError('rate_limited', message, { retry_after_s: retryAfterS, quotas: [quota] });
}

function rateQuota(
  { requests_per_second, burst }: NonNullable<Caller['rateLimit']>,
  { allowed, remaining, resetS }: RateVerdict,
): Quota {
  const windowS = Math.max(1, Math.ceil(burst / requests_per_second));
  return { policy: 'key', limit: burst, unit: 'requests', windowS, remaining, resetS, violated: !allowed };
}
