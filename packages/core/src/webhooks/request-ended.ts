/**
 * What is told when a request has ended: its record, and where it is asked for its result as GET gives it in JSON. One
 * of the handlers of requests/after-end.ts: it resolves when the deliveries are in Redis.
 */
import { isTerminal, type RequestEventData, type WebhookPayload } from '@remuda/schemas';
import type { AftermathHandler } from '../requests/aftermath.js';
import { jsonResult } from '../requests/json-result.js';
import { presentRequest } from '../requests/present-request.js';
import { readResult } from '../requests/read-result.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import type { DataOptions, WebhookOutbox } from './outbox.js';

/** The shortest JSON of eight stored bytes (an INT64 of 0) is two: less than that a result cannot become. */
const MOST_SHRINKING = 4;

export interface RequestEndedDeps {
  store: Pick<RequestStore, 'readOutcomes' | 'outcomeBytes'>;
  outbox: Pick<WebhookOutbox, 'enqueueEvent'>;
}

export function requestEnded({ store, outbox }: RequestEndedDeps): AftermathHandler {
  return {
    async handle(record) {
      const { status, document, requestId, nonce, finishedAt, acceptedAt } = record;
      if (!isTerminal(status)) return;
      await outbox.enqueueEvent({
        type: `request.${status}`,
        tenant: document.tenant,
        keyId: document.keyId ?? null,
        subject: requestId,
        nonce,
        traceId: document.traceId,
        at: finishedAt ?? acceptedAt,
        own: document.webhook,
        data: (form, options) => dataOf(record, form, options, store),
      });
    },
  };
}

async function dataOf(
  record: StoredRecord,
  form: WebhookPayload,
  { mostBytes, notice }: DataOptions,
  store: RequestEndedDeps['store'],
): Promise<RequestEventData | null> {
  const request = presentRequest(record, record.finishedAt ?? record.acceptedAt);
  if (form === 'thin') return notice === undefined ? { request } : { request, notice };
  // Not even read where it cannot fit: a result may be hundreds of megabytes.
  if ((await store.outcomeBytes(record)) > mostBytes * MOST_SHRINKING) return null;
  const raw = await readResult(record, store);
  return raw && { request, result: jsonResult(raw, 'data') };
}
