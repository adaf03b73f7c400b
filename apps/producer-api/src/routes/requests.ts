/** The record of a request: read it, wait for its end, list them, cancel. Results stand in results.ts. */
import { sightOf } from '@remuda/core/access/caller';
import { RemudaError } from '@remuda/core/errors';
import type { RequestFilter } from '@remuda/core/requests/submission';
import {
  CancelAnswer,
  isTerminal,
  LIMITS,
  ModelName,
  RequestId,
  RequestPage,
  RequestRecord,
  RequestStatus,
  TenantName,
} from '@remuda/schemas';
import * as z from 'zod';
import { hold, sendRecord } from '../answers.js';
import type { App, ServerDeps } from '../deps.js';
import { json, problems } from '../openapi.js';
import { integerText } from '../query.js';

export const IdParams = z.object({ id: z.string().describe('The request_id.') });

const TAG = /^([^:]{1,64}):(.{0,256})$/;

const ListQuery = z.strictObject({
  model: ModelName.optional(),
  status: RequestStatus.optional(),
  tenant: TenantName.optional().describe('Of this tenant; of others only with the scope admin.'),
  since: z.iso.datetime({ offset: true }).optional().describe('Accepted at this time or later.'),
  until: z.iso.datetime({ offset: true }).optional().describe('Accepted at this time or earlier.'),
  tag: z.string().regex(TAG, { error: 'name:value of a tag' }).optional().describe('A tag, as name:value.'),
  limit: integerText(1, 200).optional().describe('Most records of one page; default 50.'),
  cursor: z.string().min(1).max(300).optional().describe('next_cursor of the page before.'),
});

const DEFAULT_LIMIT = 50;

const WaitQuery = z.strictObject({
  wait: integerText(0, LIMITS.waitSeconds)
    .optional()
    .describe('Seconds to hold the call while the request has not ended.'),
});

export function requestRoutes(app: App, deps: ServerDeps): void {
  getRoute(app, deps);
  listRoute(app, deps);
  cancelRoute(app, deps);
}

function getRoute(app: App, deps: ServerDeps): void {
  const schema = {
    tags: ['requests'],
    summary: 'The record of a request',
    params: IdParams,
    querystring: WaitQuery,
    response: {
      200: json('As it is now; with ?wait=s as it is at its end or after that time.', RequestRecord),
      ...problems(404, 422, 503),
    },
  };
  app.get('/v1/requests/:id', { schema, config: { scope: 'read' } }, async (request, reply) => {
    const id = knownForm(request.params.id);
    const { wait = 0 } = request.query;
    const record =
      wait > 0
        ? await hold(reply, id, wait * 1000, deps)
        : await deps.useCases.get(id, sightOf(request.caller));
    if (wait > 0 && isTerminal(record.status)) tellDelivered(record, deps);
    return sendRecord(reply, record, 200);
  });
}

function listRoute(app: App, deps: ServerDeps): void {
  const schema = {
    tags: ['requests'],
    summary: 'Requests, newest first',
    querystring: ListQuery,
    response: {
      200: json('A page; filters that match little may give short ones.', RequestPage),
      ...problems(422, 503),
    },
  };
  app.get('/v1/requests', { schema, config: { scope: 'read' } }, async (request, reply) => {
    return reply.send(await deps.useCases.list(toFilter(request.query), sightOf(request.caller)));
  });
}

function cancelRoute(app: App, deps: ServerDeps): void {
  const schema = {
    tags: ['requests'],
    summary: 'Cancel a request',
    params: IdParams,
    response: {
      200: json('What the cancellation did.', CancelAnswer),
      ...problems(404, 409, 503),
    },
  };
  app.delete('/v1/requests/:id', { schema, config: { scope: 'submit' } }, async (request, reply) => {
    const id = knownForm(request.params.id);
    reply.header('x-request-id', id);
    return reply.send(await deps.useCases.cancel(id, sightOf(request.caller)));
  });
}

/** An id that no request can have is one that is not known; it need not reach Redis. */
export function knownForm(id: string): string {
  if (RequestId.safeParse(id).success) return id;
  throw new RemudaError(
    'request_not_found',
    `no request "${id}" is known: an id is a letter, then letters, digits, "_" or "-"`,
  );
}

function toFilter({
  since,
  until,
  tag,
  limit = DEFAULT_LIMIT,
  ...rest
}: z.infer<typeof ListQuery>): RequestFilter {
  const [, key, value] = TAG.exec(tag ?? '') ?? [];
  return {
    ...rest,
    limit,
    ...(since === undefined ? {} : { since: Date.parse(since) }),
    ...(until === undefined ? {} : { until: Date.parse(until) }),
    ...(key === undefined || value === undefined ? {} : { tag: { key, value } }),
  };
}

/** The record says how it ended; the log counts that as an answer that reached its caller. */
function tellDelivered({ trace_id, request_id, status }: RequestRecord, { life }: ServerDeps): void {
  if (life.enabled) life.delivered({ trace_id, request_id, status, by: 'wait' });
}
