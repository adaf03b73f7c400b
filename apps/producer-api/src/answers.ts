/** The answers about one request that several routes give: its record, its result, and the wait for the end of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Sight, sightOf } from '@remuda/core/access/caller';
import { jsonResult, type TensorForm } from '@remuda/core/requests/json-result';
import type { RawResult } from '@remuda/core/requests/submission';
import { isTerminal, type RequestRecord } from '@remuda/schemas';
import type { FastifyReply } from 'fastify';
import { isNoLongerLetIn, stillLetIn } from './caller.js';
import type { ServerDeps } from './deps.js';
import type { ResultFormat } from './negotiation.js';
import { binaryResult } from './result-answer.js';

/** Seconds after which a caller who polls may ask again. */
const POLL_AFTER_S = '1';

/** A record; 202 while the request has not ended, where the caller asked for more than the record. */
export function sendRecord(reply: FastifyReply, record: RequestRecord, status: 200 | 202): FastifyReply {
  reply.code(status).header('x-request-id', record.request_id);
  return reply.send(record);
}

/** 202: not ended yet. */
export function sendNotEnded(reply: FastifyReply, record: RequestRecord): FastifyReply {
  reply.header('retry-after', POLL_AFTER_S).header('location', record.urls.self);
  return sendRecord(reply, record, 202);
}

export interface ResultWish {
  format: ResultFormat;
  tensors: TensorForm;
  /** For the log: whether the caller waited or asked. */
  by: 'wait' | 'poll';
}

export function sendResult(
  reply: FastifyReply,
  raw: RawResult,
  { format, tensors, by }: ResultWish,
  { life }: Pick<ServerDeps, 'life'>,
): FastifyReply {
  reply.code(200).header('x-request-id', raw.request_id);
  if (life.enabled) {
    life.delivered({ trace_id: raw.trace_id, request_id: raw.request_id, status: raw.status, by });
  }
  if (format === 'json') return reply.send(jsonResult(raw, tensors));
  const { body, headerLength } = binaryResult(raw);
  reply.header('inference-header-content-length', headerLength).type('application/octet-stream');
  return reply.send(body);
}

/** A connection that was cut is there again by then. */
const RETRY_RESULT_MS = 250;

/**
 * Holds the call until the request has ended, the time is up, or the server closes: 200 with the result, or 202. The
 * request is accepted already, so trouble while waiting must not look like a refusal: then it is 202 too.
 */
export async function sendWhenEnded(
  reply: FastifyReply,
  accepted: RequestRecord,
  ms: number,
  format: ResultFormat,
  deps: ServerDeps,
): Promise<FastifyReply> {
  let record = accepted;
  let raw: RawResult | null = null;
  try {
    const sight = sightOf(reply.request.caller);
    record = await hold(reply, accepted.request_id, ms, deps);
    if (isTerminal(record.status)) raw = await resultOfEnded(record.request_id, sight, deps);
  } catch (error) {
    const about = { err: error, request_id: accepted.request_id };
    if (!isNoLongerLetIn(error)) deps.logger.warn(about, 'wait for an accepted request broken off');
  }
  if (!raw) return sendNotEnded(reply, record);
  return sendResult(reply, raw, { format, tensors: 'data', by: 'wait' }, deps);
}

/** Once more where the first look fails: a request that has ended must not be told as one that has not. */
async function resultOfEnded(
  requestId: string,
  sight: Sight,
  { useCases }: ServerDeps,
): Promise<RawResult | null> {
  try {
    return await useCases.result(requestId, sight);
  } catch {
    await sleep(RETRY_RESULT_MS);
    return useCases.result(requestId, sight);
  }
}

/**
 * The record when the request has ended, the time is up, the caller is gone, or the server closes.
 * @throws RemudaError as the use case; unauthorized where the key of the caller is not taken any more
 */
export async function hold(
  reply: FastifyReply,
  requestId: string,
  ms: number,
  deps: ServerDeps,
): Promise<RequestRecord> {
  const { useCases, drain } = deps;
  const sight = sightOf(reply.request.caller);
  if (drain.closing) return useCases.get(requestId, sight);
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  drain.signal.addEventListener('abort', abort);
  reply.raw.once('close', abort);
  try {
    const record = await useCases.waitFor(requestId, ms, controller.signal, sight);
    if (ms > 0) await stillLetIn(reply.request, deps);
    return record;
  } finally {
    drain.signal.removeEventListener('abort', abort);
    reply.raw.off('close', abort);
  }
}
