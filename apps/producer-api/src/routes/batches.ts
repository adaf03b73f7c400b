/**
 * Batches: bulk jobs as /v1/batches of the OpenAI API has them, and more. POST takes our form and that of its clients,
 * told apart by what names the input. What is done to a batch later stands in batch-actions.ts.
 */
import { sightOf } from '@remuda/core/access/caller';
import type { BulkCaller } from '@remuda/core/bulk/bulk-use-cases';
import type { CallOnce } from '@remuda/core/requests/idempotency';
import {
  BATCH_ENDPOINT,
  BulkJob,
  BulkJobCreate,
  BulkJobPage,
  isBatchEndpoint,
  LIMITS,
  OpenAiBatchCreate,
  refuse,
} from '@remuda/schemas';
import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import { parsed } from '../bodies/admin-body.js';
import { jsonBody } from '../bodies/content-types.js';
import type { App, ServerDeps } from '../deps.js';
import { refuseWhereFull } from '../early-refusal.js';
import { holdJob } from '../hold-job.js';
import { type Created, IDEMPOTENCY_KEY, jsonContent, once } from '../idempotency-key.js';
import { json, problems } from '../openapi.js';
import { integerText } from '../query.js';
import { checkWebhook } from '../webhook-address.js';
import { PAGE_AFTER, pageOf } from './files.js';

export const BATCHES = '/v1/batches';
export const BatchParams = z.object({ id: z.string().describe('Id of the batch: batch_….') });
const ListQuery = z.strictObject({
  limit: integerText(1, 100).optional().describe('Most batches of one page; default 20.'),
  after: PAGE_AFTER,
});
const WaitQuery = z.strictObject({
  wait: integerText(0, LIMITS.waitSeconds)
    .optional()
    .describe('Seconds to hold the call while the batch goes on: until it has ended or is paused.'),
});
const DEFAULT_LIMIT = 20;

const HEADERS = z.object({ 'idempotency-key': z.string().optional().describe(IDEMPOTENCY_KEY) });

export function batchRoutes(app: App, deps: ServerDeps): void {
  createRoute(app, deps);
  readRoutes(app, deps);
}

function createRoute(app: App, deps: ServerDeps): void {
  const schema = {
    tags: ['batches'],
    summary: 'Score a file',
    description: `Body: ours (model, input, …), or that of the OpenAI clients (input_file_id, endpoint "${BATCH_ENDPOINT}").`,
    response: {
      200: json('The batch, at its beginning.', BulkJob),
      ...problems(400, 404, 409, 413, 415, 422, 429, 503),
    },
  };
  const bodies = { 'application/json': z.union([BulkJobCreate, OpenAiBatchCreate]) };
  const config = { scope: 'submit' as const, openAi: true, submits: true, bodies, headers: HEADERS };
  app.post(BATCHES, { schema, config, onRequest: refuseWhereFull(deps) }, async (request, reply) => {
    const body = jsonBody(request);
    const job = await once(request, reply, deps, {
      content: () => jsonContent(body),
      make: async (call) => created(await create(body, request, call, deps)),
    });
    return reply.send(job);
  });
}

function created(job: BulkJob): Created<BulkJob> {
  return { status: 200, headers: { location: `${BATCHES}/${job.id}` }, body: job, requestIds: [] };
}

/** A call with a key makes a job of an id that belongs to the key: made again after a crash, it is the same job. */
async function create(
  body: unknown,
  { caller, traceId }: FastifyRequest,
  call: CallOnce | undefined,
  deps: ServerDeps,
): Promise<BulkJob> {
  const { tenant, keyId } = caller;
  const by: BulkCaller = { tenant, keyId, traceId, ...(call ? { jobId: call.reserveJob() } : {}) };
  const { bulk } = deps;
  if (isOpenAi(body)) {
    const wanted = parsed(OpenAiBatchCreate, body);
    if (!isBatchEndpoint(wanted.endpoint))
      refuse(['endpoint'], `"${BATCH_ENDPOINT}"`, `"${wanted.endpoint}"`, 'invalid_request');
    await bulk.files.get(wanted.input_file_id, sightOf(caller));
    return bulk.createOpenAi(wanted, by);
  }
  const wanted = parsed(BulkJobCreate, body);
  checkWebhook(wanted.webhook, deps.webhookAllowed, ['webhook']);
  if (wanted.input.file_id !== undefined) await bulk.files.get(wanted.input.file_id, sightOf(caller));
  return bulk.create(await withinReach(wanted, deps), by);
}

function isOpenAi(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'input_file_id' in body && !('model' in body);
}

/** The same job with each place as it may be opened. @throws InvalidInputError where one is not open to callers */
async function withinReach(wanted: BulkJobCreate, { locations }: ServerDeps): Promise<BulkJobCreate> {
  const { input, output } = wanted;
  const from = input.uri && (await locations.input(input.uri, ['input', 'uri']));
  const to = output.uri && (await locations.output(output.uri, ['output', 'uri']));
  const errors = output.errors_uri && (await locations.output(output.errors_uri, ['output', 'errors_uri']));
  return {
    ...wanted,
    input: { ...input, ...(from ? { uri: from } : {}) },
    output: { ...output, ...(to ? { uri: to } : {}), ...(errors ? { errors_uri: errors } : {}) },
  };
}

function readRoutes(app: App, deps: ServerDeps): void {
  const { bulk } = deps;
  const config = { scope: 'read', openAi: true } as const;
  const list = {
    tags: ['batches'],
    summary: 'Batches, newest first',
    querystring: ListQuery,
    response: { 200: json('A page.', BulkJobPage), ...problems(404, 422, 503) },
  };
  app.get(BATCHES, { schema: list, config }, async ({ query, caller }, reply) => {
    const page = { ...query, limit: query.limit ?? DEFAULT_LIMIT };
    return reply.send(pageOf(await bulk.list(page, sightOf(caller))));
  });
  const one = {
    tags: ['batches'],
    summary: 'One batch: how far it is, what it has cost',
    params: BatchParams,
    querystring: WaitQuery,
    response: {
      200: json('As it is now; with ?wait=s as it is at its end, or after that time.', BulkJob),
      ...problems(404, 422, 503),
    },
  };
  app.get(`${BATCHES}/:id`, { schema: one, config }, async ({ params, query, caller }, reply) => {
    const { wait = 0 } = query;
    if (wait > 0) return reply.send(await holdJob(reply, params.id, wait * 1_000, deps));
    return reply.send(await bulk.get(params.id, sightOf(caller)));
  });
}
