/**
 * The HTTP server: bodies, trace, errors, metrics and routes put together on Fastify. It knows nothing but its deps, so
 * that tests build the same server around whatever they like. The life of it is in api-service.ts.
 */
import { RemudaError } from '@remuda/core/errors';
import { InvalidInputError, violationsOf } from '@remuda/schemas';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { ZodType } from 'zod';
import { registerAudit } from './audit.js';
import { REQUEST_TYPES, registerContentTypes, unsupportedType } from './bodies/content-types.js';
import { registerCaller } from './caller.js';
import type { ServerDeps } from './deps.js';
import { toProblem } from './errors.js';
import { methodsOfRoutes } from './methods.js';
import { forOpenAi } from './openai-error.js';
import { openapiRoute, registerOpenapi } from './openapi.js';
import { addRateLimitFields } from './rate-limit-fields.js';
import { limitReceiving } from './receive-timeout.js';
import { tellInternal, tellRefusal } from './refusals.js';
import { accessRoutes } from './routes/access.js';
import { adminModelRoutes } from './routes/admin-models.js';
import { batchActionRoutes } from './routes/batch-actions.js';
import { batchRoutes } from './routes/batches.js';
import { deadLetterRoutes } from './routes/dead-letters.js';
import { fileContentRoutes } from './routes/file-content.js';
import { fileRoutes } from './routes/files.js';
import { healthRoutes } from './routes/health.js';
import { inferenceRequestRoutes } from './routes/inference-requests.js';
import { modelRoutes } from './routes/models.js';
import { requestBatchRoutes } from './routes/request-batch.js';
import { requestEventRoutes } from './routes/request-events.js';
import { requestRoutes } from './routes/requests.js';
import { resultRoutes } from './routes/results.js';
import { webhookEndpointRoutes } from './routes/webhook-endpoints.js';
import { webhookRoutes } from './routes/webhooks.js';
import { secureHeaders } from './secure-headers.js';
import { registerTrace } from './trace.js';

export function createServer(deps: ServerDeps): FastifyInstance {
  const app = Fastify({
    // Our own log has one line for each event of a request's life; a line for each call would double it.
    logger: false,
    bodyLimit: deps.maxBodyBytes,
    // Calls on a connection that stays open get our own 503, see refuseEarly.
    return503OnClosing: false,
    ...(deps.tls === null ? {} : { https: deps.tls }),
    // See receive-timeout.ts.
    requestTimeout: 0,
    routerOptions: { maxParamLength: 200 },
    frameworkErrors: (error, request, reply) => sendProblem(error, request, reply, deps),
  });
  app.setValidatorCompiler(({ schema, httpPart }) => validator(schema as unknown as ZodType, httpPart));
  // Answers are made by this code from checked parts: no second zod pass over them.
  app.setSerializerCompiler(() => JSON.stringify);
  app.setErrorHandler((error, request, reply) => sendProblem(error, request, reply, deps));
  registerTrace(app);
  limitReceiving(app, deps);
  secureHeaders(app, { tls: deps.tls !== null });
  refuseEarly(app, deps);
  registerCaller(app, deps);
  registerAudit(app, deps);
  closeWell(app, deps);
  countCalls(app, deps);
  registerContentTypes(app, deps);
  registerOpenapi(app);
  const methods = methodsOfRoutes(app);
  app.setNotFoundHandler((request, reply) => sendProblem(methods.notFound(request), request, reply, deps));
  // Inside a plugin, so that the documentation sees the routes.
  app.register(async (scope) => routes(scope, deps));
  return app;
}

function routes(scope: FastifyInstance, deps: ServerDeps): void {
  const app = scope.withTypeProvider<ZodTypeProvider>();
  inferenceRequestRoutes(app, deps);
  requestBatchRoutes(app, deps);
  requestRoutes(app, deps);
  requestEventRoutes(app, deps);
  resultRoutes(app, deps);
  webhookRoutes(app, deps);
  webhookEndpointRoutes(app, deps);
  modelRoutes(app, deps);
  adminModelRoutes(app, deps);
  deadLetterRoutes(app, deps);
  batchRoutes(app, deps);
  batchActionRoutes(app, deps);
  fileRoutes(app, deps);
  fileContentRoutes(app, deps);
  accessRoutes(app, deps);
  healthRoutes(app, deps);
  openapiRoute(scope);
}

/**
 * Queries alone: bodies are parsed by the routes, and parts of a path are text of any form (a name that cannot be is
 * one that is not found). Most calls have no query.
 */
function validator(schema: ZodType, part: string | undefined) {
  if (part !== 'querystring') return (data: unknown) => ({ value: data });
  const empty = schema.safeParse({});
  return (data: unknown) => {
    if (empty.success && isEmpty(data)) return { value: empty.data };
    const parsed = schema.safeParse(data);
    if (parsed.success) return { value: parsed.data };
    return { error: new InvalidInputError(violationsOf(parsed.error, data, ['query']), 'invalid_request') };
  };
}

function isEmpty(query: unknown): boolean {
  for (const _ in query as object) return false;
  return true;
}

function sendProblem(
  error: FastifyError | unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  deps: ServerDeps,
): FastifyReply {
  const instance = request.url.split('?', 1)[0] as string;
  const { problem, headers, quotas } = toProblem(explained(error, request, deps), {
    traceId: request.traceId,
    instance,
  });
  request.problemCode = problem.code;
  if (request.routeOptions.config?.submits) tellRefusal(problem, error, request, deps);
  else if (problem.code === 'internal') tellInternal(error, request.traceId, deps.logger);
  // What is left of a body that was too large, or of a form, is not read: the connection cannot be used again.
  const isForm = request.headers['content-type']?.startsWith('multipart/');
  if (!request.raw.complete && (problem.status === 413 || isForm)) reply.header('connection', 'close');
  addRateLimitFields(reply, quotas);
  return reply
    .code(problem.status)
    .headers(headers)
    .type('application/problem+json')
    .send(forOpenAi(problem, request, reply));
}

/** Fastify's own words for what it refuses say less than ours. */
function explained(error: unknown, request: FastifyRequest, limits: ServerDeps): unknown {
  const code = (error as FastifyError | undefined)?.code;
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    const accepted = request.routeOptions.config?.bodies;
    return unsupportedType(request.headers['content-type'], accepted ? Object.keys(accepted) : REQUEST_TYPES);
  }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE' || code === 'FST_REQ_FILE_TOO_LARGE') {
    const received = request.headers['content-length'] ?? 'more';
    const isJson = request.headers['content-type']?.startsWith('application/json');
    const most = Math.min(
      isJson ? limits.maxJsonBytes : limits.maxBodyBytes,
      request.routeOptions.bodyLimit ?? Number.POSITIVE_INFINITY,
    );
    return new RemudaError(
      'payload_too_large',
      `expected ${isJson ? 'a JSON body' : 'a body'} of at most ${most} bytes, received ${received}`,
    );
  }
  return error;
}

function closeWell(app: FastifyInstance, { drain }: ServerDeps): void {
  // Waits are answered before Fastify waits for the calls under way.
  app.addHook('preClose', (done) => {
    drain.close();
    done();
  });
  // Node closes only connections that are idle when the closing begins; a call under way then is the last of its own.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (drain.draining) reply.header('connection', 'close');
    done();
  });
}

/** What is refused before anything of it is read. */
function refuseEarly(app: FastifyInstance, { drain }: ServerDeps): void {
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    const encoding = headers['content-encoding'];
    if (drain.closing) done(new RemudaError('shutting_down', 'this server is stopping: ask another one'));
    else if (encoding === undefined || encoding === 'identity') done();
    else done(new RemudaError('unsupported_media_type', encodingRefused(encoding)));
  });
}

function encodingRefused(encoding: string): string {
  return `expected a body without Content-Encoding, received ${encoding}`;
}

function countCalls(app: FastifyInstance, { metrics }: ServerDeps): void {
  app.addHook('onResponse', ({ method, routeOptions }, reply, done) => {
    // Pattern, never the path: each new label value is a series for ever.
    const route = routeOptions.url ?? 'none';
    metrics.httpRequests.inc({ method, route, status: String(reply.statusCode) });
    metrics.httpSeconds.observe({ method, route }, reply.elapsedTime / 1000);
    done();
  });
}
