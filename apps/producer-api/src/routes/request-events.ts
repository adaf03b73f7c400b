/**
 * GET /v1/requests/{id}/events: the states of a request as Server-Sent Events, from the one it is in to its end. Each
 * event holds the whole record, so a client that connects again has missed nothing: Last-Event-ID is not needed.
 */
import { Readable } from 'node:stream';
import { isTerminal, type RequestRecord } from '@remuda/schemas';
import type { FastifyReply } from 'fastify';
import { hold } from '../answers.js';
import { isNoLongerLetIn } from '../caller.js';
import type { App, ServerDeps } from '../deps.js';
import { binary, problems } from '../openapi.js';
import { IdParams, knownForm } from './requests.js';

/** The end is told at once; of the beginning of a run nobody rings, so the record is read this often. */
const LOOK_EVERY_MS = 5_000;
/** Proxies close what is silent for longer. */
const HEARTBEAT_EVERY_MS = 15_000;
/** A client whose connection was cut comes back after that. */
const RETRY_MS = 2_000;

const SCHEMA = {
  tags: ['requests'],
  summary: 'The states of a request as they come',
  description:
    'Server-Sent Events: `state` for each state it enters, beginning with the one it is in, and for each item that ends; `ended` last, and then the stream ends. Their data is the record. A comment comes every 15 s. Close the source at `ended`, or a browser connects again.',
  params: IdParams,
  response: {
    200: {
      description: 'The stream.',
      content: { 'text/event-stream': { schema: binary('Events state and ended, each with the record.') } },
    },
    ...problems(401, 403, 404, 429, 503),
  },
};

export function requestEventRoutes(app: App, deps: ServerDeps): void {
  app.get(
    '/v1/requests/:id/events',
    { schema: SCHEMA, config: { scope: 'read' } },
    async (request, reply) => {
      const id = knownForm(request.params.id);
      // Read before anything is sent, so that an unknown request is a 404.
      const first = await hold(reply, id, 0, deps);
      reply.header('x-request-id', id).header('cache-control', 'no-store').header('x-accel-buffering', 'no');
      reply.type('text/event-stream; charset=utf-8');
      return reply.send(Readable.from(events(first, reply, deps), { objectMode: false }));
    },
  );
}

async function* events(first: RequestRecord, reply: FastifyReply, deps: ServerDeps): AsyncGenerator<string> {
  yield `retry: ${RETRY_MS}\n\n`;
  let record = first;
  let told = '';
  let silentSince = Date.now();
  while (!reply.raw.destroyed) {
    const now = mark(record);
    if (now !== told) {
      yield eventOf(record);
      told = now;
      silentSince = Date.now();
    } else if (Date.now() - silentSince >= HEARTBEAT_EVERY_MS) {
      yield ': still here\n\n';
      silentSince = Date.now();
    }
    if (isTerminal(record.status)) return tellDelivered(record, deps);
    // The server stops: the client finds another one.
    if (deps.drain.closing) return;
    const next = await hold(reply, record.request_id, LOOK_EVERY_MS, deps).catch(orNoLonger);
    // Its key is not taken any more: a client that comes again is told so.
    if (next === null) return;
    record = next;
  }
}

function orNoLonger(error: unknown): null {
  if (isNoLongerLetIn(error)) return null;
  throw error;
}

/** What makes an event: its state, its attempt, and how many of its items have ended. */
function mark({ status, attempts, items }: RequestRecord): string {
  return [status, attempts, items.succeeded, items.failed].join();
}

function eventOf(record: RequestRecord): string {
  return `event: ${isTerminal(record.status) ? 'ended' : 'state'}\ndata: ${JSON.stringify(record)}\n\n`;
}

function tellDelivered({ trace_id, request_id, status }: RequestRecord, { life }: ServerDeps): void {
  if (life.enabled) life.delivered({ trace_id, request_id, status, by: 'wait' });
}
