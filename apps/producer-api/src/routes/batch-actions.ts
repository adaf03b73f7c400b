/** What is done to a batch while it runs or when it has ended: pause, resume, cancel, failed rows again, priority. */
import { sightOf } from '@remuda/core/access/caller';
import type { BulkUseCases } from '@remuda/core/bulk/bulk-use-cases';
import { BulkJob, BulkJobPatch } from '@remuda/schemas';
import { parsed } from '../bodies/admin-body.js';
import { jsonBody } from '../bodies/content-types.js';
import type { App, ServerDeps } from '../deps.js';
import { json, problems } from '../openapi.js';
import { BATCHES, BatchParams } from './batches.js';

/** A parameter takes all up to the next "/" where no expression says what may stand in it. */
const VERB = `${BATCHES}/:id(^[A-Za-z0-9_-]+)::`;
const CONFIG = { scope: 'submit', openAi: true } as const;

type Action = 'pause' | 'resume' | 'cancel' | 'retryFailed';

const ACTIONS: readonly { url: string; action: Action; summary: string; description?: string }[] = [
  {
    url: `${VERB}pause`,
    action: 'pause',
    summary: 'Start nothing more of it',
    description: 'What is under way is finished.',
  },
  {
    url: `${VERB}resume`,
    action: 'resume',
    summary: 'Go on',
    description: 'Also with one that has failed for a reason that can pass: a full disk, too many errors.',
  },
  {
    url: `${VERB}retry-failed`,
    action: 'retryFailed',
    summary: 'Run the rows that failed once more',
    description: 'Of a batch that has ended. Their answers take the places of their errors.',
  },
  {
    url: `${VERB}cancel`,
    action: 'cancel',
    summary: 'Cancel it',
    description: 'What is done is kept and given.',
  },
  { url: `${BATCHES}/:id/cancel`, action: 'cancel', summary: 'Cancel it, as the OpenAI clients do' },
];

export function batchActionRoutes(app: App, { bulk }: ServerDeps): void {
  for (const action of ACTIONS) actionRoute(app, bulk, action);
  const schema = {
    tags: ['batches'],
    summary: 'Change its priority',
    params: BatchParams,
    response: { 200: json('The batch.', BulkJob), ...problems(400, 404, 409, 413, 415, 422, 503) },
  };
  const config = { ...CONFIG, bodies: { 'application/json': BulkJobPatch } };
  app.patch(`${BATCHES}/:id`, { schema, config }, async (request, reply) => {
    const { priority } = parsed(BulkJobPatch, jsonBody(request));
    const { params, caller } = request;
    return reply.send(await bulk.setPriority(params.id, priority, sightOf(caller)));
  });
}

function actionRoute(
  app: App,
  bulk: BulkUseCases,
  { url, action, ...about }: (typeof ACTIONS)[number],
): void {
  const schema = {
    tags: ['batches'],
    ...about,
    params: BatchParams,
    response: { 200: json('The batch as it is now.', BulkJob), ...problems(404, 409, 503) },
  };
  app.post(url, { schema, config: CONFIG }, async ({ params, caller }, reply) =>
    reply.send(await bulk[action](params.id, sightOf(caller))),
  );
}
