/**
 * The admin API of models: what is wanted of each, edited one thing at a time. Every edit says who made it, and is done
 * when it is written: the fleet follows, and GET shows how far it is.
 */
import {
  AdminModel,
  AdminModelList,
  AliasName,
  AliasTarget,
  ModelEdited,
  ModelHistory,
  ModelPatch,
  ModelRegistration,
  ModelScale,
  ShadowRule,
  TrafficSplit,
  VersionChoice,
} from '@remuda/schemas';
import * as z from 'zod';
import { actorOf } from '../actor.js';
import { optionalBody, parsed } from '../bodies/admin-body.js';
import { jsonBody } from '../bodies/content-types.js';
import type { App, ServerDeps } from '../deps.js';
import { json, problems } from '../openapi.js';
import { integerText } from '../query.js';

const MODEL = '/v1/admin/models/:model';
/** A parameter takes all up to the next "/" where no expression says what may stand in it. */
const VERB = '/v1/admin/models/:model(^[a-z0-9._-]+)::';

const Params = z.object({ model: z.string().describe('Name of the model.') });
const AliasParams = Params.extend({ alias: z.string().describe('Name of the alias.') });
const HistoryQuery = z.strictObject({
  limit: integerText(1, 500).optional().describe('Most entries; default 50.'),
});
const DEFAULT_HISTORY = 50;

const HEADERS = z.object({
  'remuda-actor': z
    .string()
    .optional()
    .describe('Who makes the edit, for the history; default: the address.'),
});

const EDITED = json('The new desired state.', ModelEdited);

/** What is wanted of a model is read by every process of the fleet at each change: it has to stay small. */
const MOST_BODY_BYTES = 262_144;

const ADMIN = { scope: 'admin' } as const;

export function adminModelRoutes(app: App, deps: ServerDeps): void {
  app.addHook('onRoute', (route) => {
    if (route.url.startsWith('/v1/admin/')) route.bodyLimit = Math.min(MOST_BODY_BYTES, deps.maxJsonBytes);
  });
  readRoutes(app, deps);
  registrationRoutes(app, deps);
  loadRoutes(app, deps);
  aliasRoutes(app, deps);
  trafficRoutes(app, deps);
}

function readRoutes(app: App, { admin }: ServerDeps): void {
  const list = {
    ...about('All models, with what is wanted of them'),
    response: {
      200: json('Those that were taken out too.', AdminModelList),
      ...problems(503),
    },
  };
  app.get('/v1/admin/models', { schema: list, config: ADMIN }, async (_request, reply) =>
    reply.send({ models: admin.list() }),
  );

  const detail = {
    ...about('One model: what is wanted, what is served, what each worker has'),
    params: Params,
    response: { 200: json('As the last heartbeats say.', AdminModel), ...problems(404, 503) },
  };
  app.get(MODEL, { schema: detail, config: ADMIN }, async (request, reply) => {
    return reply.send(await admin.describe(request.params.model));
  });

  const history = {
    ...about('What was done to a model, newest first'),
    params: Params,
    querystring: HistoryQuery,
    response: { 200: json('Who, when, what.', ModelHistory), ...problems(404, 422, 503) },
  };
  app.get(`${MODEL}/history`, { schema: history, config: ADMIN }, async (request, reply) => {
    const { limit = DEFAULT_HISTORY } = request.query;
    return reply.send({ events: await admin.history(request.params.model, limit) });
  });
}

function registrationRoutes(app: App, { admin }: ServerDeps): void {
  const register = {
    ...about('Register a model, or change what was registered'),
    response: { 201: EDITED, ...problems(400, 413, 415, 422, 503) },
  };
  app.post(
    '/v1/admin/models',
    { schema: register, config: takes(ModelRegistration) },
    async (request, reply) => {
      const registration = parsed(ModelRegistration, jsonBody(request));
      const edited = await admin.register(registration, actorOf(request));
      return reply.code(201).header('location', `/v1/admin/models/${registration.name}`).send(edited);
    },
  );

  app.patch(
    MODEL,
    { schema: edits('Change settings'), config: takes(ModelPatch) },
    async (request, reply) => {
      const patch = parsed(ModelPatch, jsonBody(request));
      return reply.send(await admin.update(request.params.model, patch, actorOf(request)));
    },
  );

  const takeOut = { ...removes('Take a model out') };
  app.delete(MODEL, { schema: takeOut, config: HEADERS_ONLY }, async (request, reply) => {
    return reply.send(await admin.unregister(request.params.model, actorOf(request)));
  });
}

function loadRoutes(app: App, { admin }: ServerDeps): void {
  const choice = takes(VersionChoice);
  app.post(`${VERB}load`, { schema: edits('Load a version'), config: choice }, async (request, reply) => {
    const { version } = parsed(VersionChoice, optionalBody(request));
    return reply.send(await admin.load(request.params.model, version, actorOf(request)));
  });

  app.post(
    `${VERB}unload`,
    { schema: edits('Unload a version, or all'), config: choice },
    async (request, reply) => {
      const { version } = parsed(VersionChoice, optionalBody(request));
      return reply.send(await admin.unload(request.params.model, version, actorOf(request)));
    },
  );

  const scale = edits('Set how many sessions run side by side on each device');
  app.post(`${VERB}scale`, { schema: scale, config: takes(ModelScale) }, async (request, reply) => {
    const { instances } = parsed(ModelScale, jsonBody(request));
    return reply.send(await admin.scale(request.params.model, instances, actorOf(request)));
  });
}

function aliasRoutes(app: App, { admin }: ServerDeps): void {
  const set = { ...edits('Let an alias lead to a version'), params: AliasParams };
  app.put(`${MODEL}/aliases/:alias`, { schema: set, config: takes(AliasTarget) }, async (request, reply) => {
    const alias = parsed(AliasName, request.params.alias, ['path', 'alias']);
    const { version } = parsed(AliasTarget, jsonBody(request));
    return reply.send(await admin.setAlias(request.params.model, alias, version, actorOf(request)));
  });

  const remove = {
    ...edits('Take an alias away'),
    params: AliasParams,
    response: { 200: EDITED, ...problems(404, 422, 503) },
  };
  app.delete(`${MODEL}/aliases/:alias`, { schema: remove, config: HEADERS_ONLY }, async (request, reply) => {
    const { model, alias } = request.params;
    return reply.send(await admin.removeAlias(model, alias, actorOf(request)));
  });
}

function trafficRoutes(app: App, { admin }: ServerDeps): void {
  const split = edits('Spread requests without a version by weight');
  app.put(`${MODEL}/split`, { schema: split, config: takes(TrafficSplit) }, async (request, reply) => {
    const wanted = parsed(TrafficSplit, jsonBody(request));
    return reply.send(await admin.setSplit(request.params.model, wanted, actorOf(request)));
  });

  app.delete(
    `${MODEL}/split`,
    { schema: removes('End the split'), config: HEADERS_ONLY },
    async (request, reply) => {
      return reply.send(await admin.removeSplit(request.params.model, actorOf(request)));
    },
  );

  const shadow = edits('Run copies of requests on another version');
  app.put(`${MODEL}/shadow`, { schema: shadow, config: takes(ShadowRule) }, async (request, reply) => {
    const wanted = parsed(ShadowRule, jsonBody(request));
    return reply.send(await admin.setShadow(request.params.model, wanted, actorOf(request)));
  });

  app.delete(
    `${MODEL}/shadow`,
    { schema: removes('End the shadow'), config: HEADERS_ONLY },
    async (request, reply) => {
      return reply.send(await admin.removeShadow(request.params.model, actorOf(request)));
    },
  );
}

const HEADERS_ONLY = { ...ADMIN, headers: HEADERS };

function about(summary: string) {
  return { tags: ['admin'], summary };
}

function edits(summary: string) {
  return {
    ...about(summary),
    params: Params,
    response: { 200: EDITED, ...problems(400, 404, 413, 415, 422, 503) },
  };
}

function removes(summary: string) {
  return {
    ...about(summary),
    params: Params,
    response: { 200: EDITED, ...problems(404, 503) },
  };
}

function takes(body: z.ZodType) {
  return { ...ADMIN, bodies: { 'application/json': body }, headers: HEADERS };
}
