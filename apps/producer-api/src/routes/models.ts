/** What can be run, and by whom: the models of the repository, and the fleet. */
import { Fleet, ModelDetail, ModelSummary } from '@remuda/schemas';
import * as z from 'zod';
import type { App, ServerDeps } from '../deps.js';
import { json, problems } from '../openapi.js';

const ModelList = z.strictObject({ models: z.array(ModelSummary) }).meta({ id: 'ModelList' });

const READ = { scope: 'read' } as const;

export function modelRoutes(app: App, { useCases }: ServerDeps): void {
  const list = {
    tags: ['models'],
    summary: 'All models of the repository',
    response: {
      200: json('With their queues, the workers that serve them, and what is wrong with them.', ModelList),
      ...problems(503),
    },
  };
  app.get('/v1/models', { schema: list, config: READ }, async (_request, reply) => {
    return reply.send({ models: await useCases.models() });
  });

  const detail = {
    tags: ['models'],
    summary: 'One model',
    params: z.object({ model: z.string() }),
    response: {
      200: json('With its configuration and its signature: what it takes and gives.', ModelDetail),
      ...problems(404, 503),
    },
  };
  app.get('/v1/models/:model', { schema: detail, config: READ }, async (request, reply) => {
    return reply.send(await useCases.model(request.params.model));
  });

  const fleet = {
    tags: ['server'],
    summary: 'The workers that are alive',
    response: { 200: json('As their last heartbeats say.', Fleet), ...problems(503) },
  };
  app.get('/v1/fleet', { schema: fleet, config: READ }, async (_request, reply) =>
    reply.send(await useCases.fleet()),
  );
}
