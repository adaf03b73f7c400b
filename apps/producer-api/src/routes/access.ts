/**
 * The admin API of access: keys, tenants and the audit log. A secret is in two answers, those that make one, which no
 * cache may keep.
 */

import { RemudaError } from '@remuda/core/errors';
import {
  ApiKey,
  ApiKeyCreate,
  ApiKeyList,
  ApiKeyRotate,
  AuditPage,
  IssuedKey,
  KeyId,
  Tenant,
  TenantList,
  TenantName,
  TenantPut,
} from '@remuda/schemas';
import type { FastifyReply } from 'fastify';
import * as z from 'zod';
import { optionalBody, parsed } from '../bodies/admin-body.js';
import { jsonBody } from '../bodies/content-types.js';
import type { App, ServerDeps } from '../deps.js';
import { json, problems } from '../openapi.js';
import { integerText } from '../query.js';

const KEYS = '/v1/admin/keys';
/** A parameter takes all up to the next "/" where no expression says what may stand in it. */
const KEY_VERB = `${KEYS}/:id(^[A-Za-z0-9_-]+)::`;
const TENANT = '/v1/admin/tenants/:tenant';

const KeyParams = z.object({ id: z.string().describe('Id of the key.') });
const TenantParams = z.object({ tenant: z.string().describe('Name of the tenant.') });
const KeysQuery = z.strictObject({ tenant: TenantName.optional() });
const AuditQuery = z.strictObject({
  limit: integerText(1, 500).optional().describe('Most entries; default 50.'),
  before: z
    .string()
    .regex(/^\d{1,15}-\d{1,10}$/, { error: 'the id of an entry' })
    .optional()
    .describe('id of an entry: only what is older.'),
});
const DEFAULT_ENTRIES = 50;

const ADMIN = { scope: 'admin' } as const;

export function accessRoutes(app: App, deps: ServerDeps): void {
  keyRoutes(app, deps);
  secretRoutes(app, deps);
  tenantRoutes(app, deps);
  auditRoute(app, deps);
}

function keyRoutes(app: App, { access }: ServerDeps): void {
  const list = {
    ...about('All API keys, newest first'),
    querystring: KeysQuery,
    response: { 200: json('Without their secrets.', ApiKeyList), ...refusals(422) },
  };
  app.get(KEYS, { schema: list, config: ADMIN }, async (request, reply) => {
    const { tenant } = request.query;
    const keys = await access.listKeys();
    return reply.send({ keys: tenant === undefined ? keys : keys.filter((key) => key.tenant === tenant) });
  });

  const show = {
    ...about('One API key'),
    params: KeyParams,
    response: { 200: json('Without its secret.', ApiKey), ...refusals(404) },
  };
  app.get(`${KEYS}/:id`, { schema: show, config: ADMIN }, async (request, reply) => {
    return reply.send(await access.getKey(knownForm(request.params.id)));
  });

  const revoke = {
    ...about('Revoke an API key: from the answer on it is not taken'),
    params: KeyParams,
    response: { 200: json('The key as it is now.', ApiKey), ...refusals(404) },
  };
  app.post(`${KEY_VERB}revoke`, { schema: revoke, config: ADMIN }, async (request, reply) => {
    return reply.send(await access.revokeKey(knownForm(request.params.id)));
  });
}

function secretRoutes(app: App, { access }: ServerDeps): void {
  const create = {
    ...about('Make an API key'),
    response: { 201: json('With its secret, shown only now.', IssuedKey), ...refusals(400, 413, 415, 422) },
  };
  app.post(KEYS, { schema: create, config: takes(ApiKeyCreate) }, async (request, reply) => {
    const issued = await access.createKey(parsed(ApiKeyCreate, jsonBody(request)));
    const { id, tenant, scopes } = issued.key;
    request.auditTarget = { id, tenant, scopes: scopes.join(',') };
    reply.code(201).header('location', `${KEYS}/${id}`);
    return notKept(reply).send(issued);
  });

  const rotate = {
    ...about('Give an API key a new secret'),
    params: KeyParams,
    response: {
      200: json('With its secret, shown only now.', IssuedKey),
      ...refusals(400, 404, 413, 415, 422),
    },
  };
  app.post(`${KEY_VERB}rotate`, { schema: rotate, config: takes(ApiKeyRotate) }, async (request, reply) => {
    const wanted = parsed(ApiKeyRotate, optionalBody(request));
    return notKept(reply).send(await access.rotateKey(knownForm(request.params.id), wanted));
  });
}

function tenantRoutes(app: App, { access }: ServerDeps): void {
  const list = {
    ...about('Tenants of which something is set or that have a key'),
    response: { 200: json('By name.', TenantList), ...refusals() },
  };
  app.get('/v1/admin/tenants', { schema: list, config: ADMIN }, async (_request, reply) => {
    return reply.send({ tenants: await access.listTenants() });
  });

  const show = {
    ...about('One tenant'),
    params: TenantParams,
    response: { 200: json('Its share and its limits.', Tenant), ...refusals(404) },
  };
  app.get(TENANT, { schema: show, config: ADMIN }, async (request, reply) => {
    return reply.send(await access.getTenant(request.params.tenant));
  });

  const put = {
    ...about('Set share and limits of a tenant: the whole of it, what is left out is the default'),
    params: TenantParams,
    response: { 200: json('As it is now.', Tenant), ...refusals(400, 413, 415, 422) },
  };
  app.put(TENANT, { schema: put, config: takes(TenantPut) }, async (request, reply) => {
    const name = parsed(TenantName, request.params.tenant, ['path', 'tenant']);
    return reply.send(await access.putTenant(name, parsed(TenantPut, jsonBody(request))));
  });
}

function auditRoute(app: App, { access }: ServerDeps): void {
  const schema = {
    ...about('What was done by whom, newest first'),
    querystring: AuditQuery,
    response: { 200: json('Of about the last 10,000 entries.', AuditPage), ...refusals(422) },
  };
  app.get('/v1/admin/audit', { schema, config: ADMIN }, async (request, reply) => {
    const { limit = DEFAULT_ENTRIES, before } = request.query;
    return reply.send({ entries: await access.listAudit(limit, before) });
  });
}

function about(summary: string) {
  return { tags: ['access'], summary };
}

function takes(body: z.ZodType) {
  return { ...ADMIN, bodies: { 'application/json': body } };
}

function refusals(...statuses: number[]) {
  return problems(...statuses, 503);
}

/** What no key can be called is not found; it need not reach Redis. */
function knownForm(id: string): string {
  if (KeyId.safeParse(id).success) return id;
  throw new RemudaError('key_not_found', `there is no API key "${id}": an id is 12 letters and digits`);
}

function notKept(reply: FastifyReply): FastifyReply {
  return reply.header('cache-control', 'no-store');
}
