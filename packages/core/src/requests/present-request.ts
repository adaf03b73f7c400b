/** A stored record as people see it. The shape is RequestRecord of packages/schemas. */
import { isTerminal, type RequestRecord } from '@remuda/schemas';
import type { Acceptance } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';

/** @param now Unix milliseconds; while a request has not ended, its end and so its expiry would be now at the earliest */
export function presentRequest(record: StoredRecord, now: number): RequestRecord {
  const { requestId, document, status, items, itemsOk, itemsDone } = record;
  const self = `/v1/requests/${requestId}`;
  return {
    request_id: requestId,
    model: document.model,
    version: document.version,
    digest: document.digest,
    status,
    tenant: document.tenant,
    items: {
      total: items,
      succeeded: itemsOk,
      // What a request that has ended as a whole (cancelled, say) did not get to has not succeeded either.
      failed: (isTerminal(status) ? items : itemsDone) - itemsOk,
    },
    rows: document.rows,
    metadata: document.metadata,
    route: document.route,
    attempts: record.token - record.tokensSkipped,
    error: record.error,
    created_at: iso(record.acceptedAt),
    started_at: record.startedAt === null ? null : iso(record.startedAt),
    finished_at: record.finishedAt === null ? null : iso(record.finishedAt),
    deadline_at: record.deadline === 0 ? null : iso(record.deadline),
    finish_deadline_at: record.finishDeadline === 0 ? null : iso(record.finishDeadline),
    expires_at: iso(record.expiresAt ?? now + record.resultTtlMs),
    trace_id: document.traceId,
    notices: noticesOf(record),
    ...copiedFrom(record),
    urls: { self, result: `${self}/result`, cancel: self },
  };
}

function noticesOf(record: StoredRecord): string[] {
  const { document, status, follows } = record;
  if (isCopy(record)) return [...document.notices, 'answered with the answer of an identical request'];
  if (follows === null || status !== 'queued') return document.notices;
  return [...document.notices, 'an identical request is under way; its answer will be that of this one'];
}

/** It has the answer of another request. */
function isCopy({ status, follows, startedAt }: StoredRecord): boolean {
  return status === 'succeeded' && follows !== null && startedAt === null;
}

/** In a cache that tenants share, the other request may be of another tenant, who is told to nobody. */
function copiedFrom(record: StoredRecord): { cached_from?: string } {
  if (!isCopy(record) || record.document.cache?.shared) return {};
  return { cached_from: record.follows as string };
}

/** The record that an acceptance has just made, without reading it back. */
export function recordOf(acceptance: Acceptance): StoredRecord {
  return {
    requestId: acceptance.requestId,
    document: acceptance.document,
    status: 'queued',
    nonce: acceptance.nonce,
    items: acceptance.payloads.length,
    itemsOk: 0,
    itemsDone: 0,
    token: 0,
    tokensSkipped: 0,
    begunAgain: 0,
    acceptedAt: acceptance.acceptedAt,
    startedAt: null,
    finishedAt: null,
    expiresAt: null,
    deadline: acceptance.deadline,
    finishDeadline: acceptance.finishDeadline,
    resultTtlMs: acceptance.resultTtlMs,
    error: null,
    follows: acceptance.follows ?? null,
  };
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}
