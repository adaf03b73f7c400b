/**
 * POST /v1/requests:batch: up to 1,000 requests in one call, each with a model of its own, each accepted or refused by
 * itself. The call fails as a whole only where none could have been accepted: its shape is wrong, or Redis is away.
 */
import { RemudaError } from '@remuda/core/errors';
import { newTraceId } from '@remuda/core/ids';
import type { CallOnce } from '@remuda/core/requests/idempotency';
import type { RequestUseCases, Submission } from '@remuda/core/requests/submission';
import {
  BatchSubmission,
  describeValue,
  InferenceRequest,
  InvalidInputError,
  type Lane,
  ModelName,
  Problem,
  RequestRecord,
  refuse,
  violationsOf,
} from '@remuda/schemas';
import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import { jsonBody } from '../bodies/content-types.js';
import { parseJsonRequest } from '../bodies/json-body.js';
import type { App, ServerDeps } from '../deps.js';
import { toProblem } from '../errors.js';
import { type Created, IDEMPOTENCY_KEY, jsonContent, once } from '../idempotency-key.js';
import { json, problems } from '../openapi.js';
import { tellRefusal } from '../refusals.js';
import { toSubmission } from '../submission.js';

const BatchResult = z.union([
  z.strictObject({ status: z.literal(202), record: RequestRecord }),
  z.strictObject({ status: z.int(), problem: Problem }),
]);

export const BatchAnswer = z
  .strictObject({
    results: z.array(BatchResult).describe('In the order of the requests.'),
    accepted: z.int(),
    refused: z.int(),
  })
  .meta({ id: 'BatchAnswer' });
type BatchAnswer = z.infer<typeof BatchAnswer>;

/** As it is documented: what one entry looks like. Each is parsed alone. */
const DocumentedBatch = BatchSubmission.extend({
  requests: z
    .array(z.intersection(z.object({ model: ModelName }), InferenceRequest))
    .min(1)
    .max(1_000),
});

const HEADERS = z.object({ 'idempotency-key': z.string().optional().describe(IDEMPOTENCY_KEY) });

const SCHEMA = {
  tags: ['requests'],
  summary: 'Send many requests in one call',
  response: {
    200: json('An answer for each request.', BatchAnswer),
    ...problems(400, 409, 413, 415, 422, 429, 503),
  },
};

export function requestBatchRoutes(app: App, deps: ServerDeps): void {
  const bodies = { 'application/json': DocumentedBatch };
  const config = { scope: 'submit' as const, submits: true, bodies, headers: HEADERS };
  app.post('/v1/requests::batch', { schema: SCHEMA, config }, async (request, reply) => {
    const body = jsonBody(request);
    const { lane, requests } = parseBatch(body);
    const answer = await once(request, reply, deps, {
      content: () => jsonContent(body),
      make: async (call) => {
        const submissions = await Promise.all(
          requests.map((entry, index) => submissionOrError(entry, index, { lane, request, call }, deps)),
        );
        const outcomes = await submitGood(submissions, deps.useCases);
        throwIfStoreIsAway(outcomes);
        return created(outcomes, answerOf(outcomes, request, deps));
      },
    });
    return reply.send(answer);
  });
}

function created(outcomes: readonly Outcome[], body: BatchAnswer): Created<BatchAnswer> {
  const requestIds = outcomes.flatMap((outcome) =>
    outcome instanceof Error ? [] : [outcome.record.request_id],
  );
  const refusals = requestIds.length > 0 ? [] : outcomes;
  return { status: 200, headers: {}, body, requestIds, refusals };
}

function parseBatch(body: unknown): z.infer<typeof BatchSubmission> {
  const parsed = BatchSubmission.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(violationsOf(parsed.error, body), 'invalid_request');
}

async function submissionOrError(
  entry: unknown,
  index: number,
  { lane, request, call }: { lane: Lane; request: FastifyRequest; call: CallOnce | undefined },
  { useCases, webhookAllowed }: Pick<ServerDeps, 'useCases' | 'webhookAllowed'>,
): Promise<Submission | Error> {
  try {
    const path = ['requests', index];
    const { model, rest } = splitEntry(entry, path);
    // Without a trace of the caller's each request gets one of its own, so that each has its own way in the log.
    const { traceId, traceGiven, caller } = request;
    const reserved = call?.reserve(index);
    const trace = traceGiven ? traceId : newTraceId();
    const context = { model, lane, traceId: trace, caller, reserved, webhookAllowed, path };
    return await toSubmission(parseJsonRequest(rest, path), context, useCases);
  } catch (error) {
    return error as Error;
  }
}

function splitEntry(entry: unknown, path: PropertyKey[]): { model: string; rest: unknown } {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    refuse(path, 'an object', describeValue(entry), 'invalid_request');
  }
  const { model, ...rest } = entry as Record<string, unknown>;
  if (typeof model !== 'string') {
    refuse([...path, 'model'], 'the name of a model', describeValue(model), 'invalid_request');
  }
  return { model, rest };
}

type Outcome = { record: RequestRecord } | Error;

/** The good ones go to Redis together; each bad one keeps its place. */
async function submitGood(
  submissions: readonly (Submission | Error)[],
  useCases: Pick<RequestUseCases, 'submitMany'>,
): Promise<Outcome[]> {
  const good = submissions.filter((submission) => !(submission instanceof Error)) as Submission[];
  const answers = good.length > 0 ? await useCases.submitMany(good) : [];
  let next = 0;
  return submissions.map((submission) =>
    submission instanceof Error ? submission : (answers[next++] as Outcome),
  );
}

/** Where nothing at all could be stored the call itself is 503, so that callers and proxies try it again. */
function throwIfStoreIsAway(outcomes: readonly Outcome[]): void {
  const isAway = (outcome: Outcome): boolean =>
    outcome instanceof RemudaError && outcome.code === 'store_unavailable';
  if (outcomes.every(isAway)) throw outcomes[0];
}

function answerOf(outcomes: readonly Outcome[], request: FastifyRequest, deps: ServerDeps): BatchAnswer {
  const instance = request.url;
  let refused = 0;
  const results = outcomes.map((outcome): BatchAnswer['results'][number] => {
    if (!(outcome instanceof Error)) return { status: 202, record: outcome.record };
    refused++;
    const { problem } = toProblem(outcome, { traceId: request.traceId, instance });
    tellRefusal(problem, outcome, request, deps);
    return { status: problem.status, problem };
  });
  return { results, accepted: outcomes.length - refused, refused };
}
