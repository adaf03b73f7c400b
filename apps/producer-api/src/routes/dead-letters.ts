/** What was given up: list, inspect, run again (one or many, on another version, too), discard. */
import { sightOf } from '@remuda/core/access/caller';
import {
  DeadLetter,
  DeadLetterChoice,
  DeadLetterPage,
  DiscardAnswer,
  ErrorClass,
  ModelName,
  Redrive,
  RedriveAnswer,
  RedriveMany,
} from '@remuda/schemas';
import * as z from 'zod';
import { optionalBody, parsed } from '../bodies/admin-body.js';
import { jsonBody } from '../bodies/content-types.js';
import type { App, ServerDeps } from '../deps.js';
import { json, nothing, problems } from '../openapi.js';
import { integerText } from '../query.js';

const ALL = '/v1/dead-letters';
const Params = z.object({ id: z.string().describe('The request_id of what was given up.') });
const ListQuery = z.strictObject({
  model: ModelName.optional(),
  class: ErrorClass.optional(),
  limit: integerText(1, 200).optional().describe('Most letters of one page; default 50.'),
  cursor: z.string().min(1).max(300).optional().describe('next_cursor of the page before.'),
});
const DEFAULT_LIMIT = 50;

export function deadLetterRoutes(app: App, deps: ServerDeps): void {
  readRoutes(app, deps);
  redriveRoutes(app, deps);
  discardRoutes(app, deps);
}

function readRoutes(app: App, { deadLetters }: ServerDeps): void {
  const list = {
    tags: ['dead letters'],
    summary: 'What was given up, newest first',
    querystring: ListQuery,
    response: {
      200: json('A page; filters that fit few may give short ones.', DeadLetterPage),
      ...problems(422, 503),
    },
  };
  app.get(ALL, { schema: list, config: { scope: 'read' } }, async ({ query, caller }, reply) => {
    const limit = query.limit ?? DEFAULT_LIMIT;
    return reply.send(await deadLetters.list({ ...query, limit, tenant: sightOf(caller) }));
  });
  const one = {
    tags: ['dead letters'],
    summary: 'One of them',
    params: Params,
    response: { 200: json('With each item that was given up.', DeadLetter), ...problems(404, 503) },
  };
  app.get(`${ALL}/:id`, { schema: one, config: { scope: 'read' } }, async ({ params, caller }, reply) =>
    reply.send(await deadLetters.get(params.id, sightOf(caller))),
  );
}

function redriveRoutes(app: App, { deadLetters }: ServerDeps): void {
  const one = {
    tags: ['dead letters'],
    summary: 'Run it again, as a new request',
    params: Params,
    response: {
      200: json('The new request.', z.object({ redriven_as: z.string() })),
      ...problems(404, 409, 422, 429, 503),
    },
  };
  app.post(
    `${ALL}/:id/redrive`,
    { schema: one, config: { scope: 'submit', bodies: BODY(Redrive) } },
    async (request, reply) => {
      const { version } = parsed(Redrive, optionalBody(request));
      const { params, caller } = request;
      return reply.send(await deadLetters.redrive(params.id, sightOf(caller), version));
    },
  );
  const many = {
    tags: ['dead letters'],
    summary: 'Run many again',
    description: 'Each by itself. Where the queue is full or Redis is away the rest is left as it is.',
    response: { 200: json('What became of each.', RedriveAnswer), ...problems(422, 503) },
  };
  app.post(
    '/v1/dead-letters::redrive',
    { schema: many, config: { scope: 'submit', bodies: BODY(RedriveMany) } },
    async (request, reply) => {
      const { choose, version } = parsed(RedriveMany, jsonBody(request));
      return reply.send(await deadLetters.redriveMany(choose, sightOf(request.caller), version));
    },
  );
}

function discardRoutes(app: App, { deadLetters }: ServerDeps): void {
  const one = {
    tags: ['dead letters'],
    summary: 'Throw it away with its inputs',
    params: Params,
    response: { 204: nothing('It is gone.'), ...problems(404, 503) },
  };
  app.delete(
    `${ALL}/:id`,
    { schema: one, config: { scope: 'submit' } },
    async ({ params, caller }, reply) => {
      await deadLetters.discard(params.id, sightOf(caller));
      return reply.code(204).send();
    },
  );
  const many = {
    tags: ['dead letters'],
    summary: 'Throw many away',
    response: { 200: json('How many there were.', DiscardAnswer), ...problems(422, 503) },
  };
  app.post(
    '/v1/dead-letters::discard',
    { schema: many, config: { scope: 'submit', bodies: BODY(DeadLetterChoice) } },
    async (request, reply) => {
      const choice = parsed(DeadLetterChoice, jsonBody(request));
      return reply.send({ discarded: await deadLetters.discardMany(choice, sightOf(request.caller)) });
    },
  );
}

const BODY = (schema: z.ZodType) => ({ 'application/json': schema });
