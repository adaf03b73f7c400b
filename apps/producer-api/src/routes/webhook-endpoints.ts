/** Webhook endpoints of a tenant, and the secret that its webhooks are signed with. */
import {
  TenantName,
  WebhookEndpoint,
  WebhookEndpointList,
  WebhookEndpointSpec,
  WebhookRotation,
  WebhookSigningSecret,
} from '@remuda/schemas';
import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import { optionalBody, parsed } from '../bodies/admin-body.js';
import { jsonBody } from '../bodies/content-types.js';
import type { App, ServerDeps } from '../deps.js';
import { json, nothing, problems } from '../openapi.js';
import { checkAddress } from '../webhook-address.js';

const ENDPOINTS = '/v1/webhooks/endpoints';
const SECRET = '/v1/webhooks/secret';
/** A parameter takes all up to the next "/" where no expression says what may stand in it. */
const ENABLE = `${ENDPOINTS}/:id(^[a-z0-9_]+)::enable`;

const EndpointParams = z.object({ id: z.string().describe('Id of an endpoint.') });
const TenantQuery = z.strictObject({
  tenant: TenantName.optional().describe('Whose; default the tenant of the caller.'),
});
const ADMIN = { scope: 'admin' } as const;
const ENDPOINT = json('The endpoint.', WebhookEndpoint);

export function webhookEndpointRoutes(app: App, deps: ServerDeps): void {
  addRoute(app, deps);
  readRoutes(app, deps);
  changeRoutes(app, deps);
  secretRoutes(app, deps);
}

function addRoute(app: App, { webhooks, webhookAllowed }: ServerDeps): void {
  const schema = {
    ...about('Add an endpoint, which is told of every request of the tenant from now on'),
    response: { 201: ENDPOINT, ...problems(400, 401, 403, 413, 415, 422, 429, 503) },
  };
  const config = takes(WebhookEndpointSpec);
  app.post(ENDPOINTS, { schema, config }, async (request, reply) => {
    const spec = parsed(WebhookEndpointSpec, jsonBody(request));
    checkAddress(spec.url, webhookAllowed, ['url']);
    const endpoint = await webhooks.addEndpoint(spec, tenantOf(request));
    request.auditTarget = { ...request.auditTarget, id: endpoint.id };
    return reply.code(201).header('location', `${ENDPOINTS}/${endpoint.id}`).send(endpoint);
  });
}

function readRoutes(app: App, { webhooks }: ServerDeps): void {
  const list = {
    ...about('The endpoints of the tenant'),
    response: { 200: json('Oldest first.', WebhookEndpointList), ...problems(401, 403, 422, 429, 503) },
  };
  app.get(ENDPOINTS, { schema: list, config: ADMIN }, async (request, reply) =>
    reply.send({ endpoints: await webhooks.endpoints(tenantOf(request)) }),
  );

  const one = {
    ...about('One endpoint'),
    params: EndpointParams,
    response: { 200: ENDPOINT, ...problems(401, 403, 404, 422, 429, 503) },
  };
  app.get(`${ENDPOINTS}/:id`, { schema: one, config: ADMIN }, async (request, reply) =>
    reply.send(await webhooks.endpoint(request.params.id, tenantOf(request))),
  );
}

function changeRoutes(app: App, { webhooks }: ServerDeps): void {
  const enable = {
    ...about('Send to an endpoint again that was disabled'),
    description:
      'An endpoint is disabled when it answers 410. What was given up meanwhile can be delivered once more, one by one.',
    params: EndpointParams,
    response: { 200: ENDPOINT, ...problems(401, 403, 404, 422, 429, 503) },
  };
  app.post(ENABLE, { schema: enable, config: ADMIN }, async (request, reply) =>
    reply.send(await webhooks.enableEndpoint(request.params.id, tenantOf(request))),
  );

  const remove = {
    ...about('Delete an endpoint: what is pending for it is given up'),
    params: EndpointParams,
    response: { 204: nothing('Deleted.'), ...problems(401, 403, 404, 422, 429, 503) },
  };
  app.delete(`${ENDPOINTS}/:id`, { schema: remove, config: ADMIN }, async (request, reply) => {
    await webhooks.removeEndpoint(request.params.id, tenantOf(request));
    return reply.code(204).send(null);
  });
}

function secretRoutes(app: App, { webhooks }: ServerDeps): void {
  const SIGNING = json('The secret that signs now.', WebhookSigningSecret);
  const show = {
    ...about('The signing secret of the tenant; made when it is first asked for'),
    response: { 200: SIGNING, ...problems(401, 403, 422, 429, 503) },
  };
  app.get(SECRET, { schema: show, config: ADMIN }, async (request, reply) =>
    reply.header('cache-control', 'no-store').send(await webhooks.secret(tenantOf(request))),
  );

  const rotate = {
    ...about('A new signing secret; the one before signs beside it for a while'),
    response: { 200: SIGNING, ...problems(400, 401, 403, 413, 415, 422, 429, 503) },
  };
  app.post(
    `${SECRET}::rotate`,
    { schema: rotate, config: takes(WebhookRotation) },
    async (request, reply) => {
      const { overlap_s } = parsed(WebhookRotation, optionalBody(request));
      const secret = await webhooks.rotateSecret(tenantOf(request), overlap_s);
      return reply.header('cache-control', 'no-store').send(secret);
    },
  );
}

function about(summary: string) {
  return { tags: ['webhooks'], summary, querystring: TenantQuery };
}

function takes(body: z.ZodType) {
  return { ...ADMIN, bodies: { 'application/json': body } };
}

function tenantOf(request: FastifyRequest): string {
  const tenant = (request.query as z.infer<typeof TenantQuery>).tenant ?? request.caller.tenant;
  request.auditTarget = { ...request.auditTarget, tenant };
  return tenant;
}
