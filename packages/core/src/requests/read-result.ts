/**
 * The result of a request that has ended: the frames of its outcomes, opened. An item without an outcome of its own
 * shares the fate of the request (cancelled, expired, given up); it is never left out.
 */
import { decodeFrame, type ItemError, isTerminal, type TerminalStatus } from '@remuda/schemas';
import { itemError } from '../errors.js';
import type { OutcomeExtras } from '../store/outcome.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import { iso } from './present-request.js';
import type { RawResult } from './submission.js';

type RawItem = RawResult['items'][number];

/** null while the request has not ended. */
export async function readResult(
  record: StoredRecord,
  store: Pick<RequestStore, 'readOutcomes'>,
): Promise<RawResult | null> {
  const { status } = record;
  if (!isTerminal(status)) return null;
  const frames = await store.readOutcomes(record);
  const items = frames.map((frame, index) =>
    frame ? openOutcome(record, index, frame) : withoutOutcome(record, status, index),
  );
  return resultOf(record, status, items);
}

function openOutcome(record: StoredRecord, index: number, frame: Buffer): RawItem {
  const { tensors, extras } = decodeFrame(frame);
  const { error = null, metrics = null, model_extra = {} } = extras as OutcomeExtras;
  return {
    id: idOf(record, index),
    index,
    status: statusOf(error),
    outputs: error ? null : tensors,
    error,
    metrics,
    model_extra,
  };
}

function statusOf(error: ItemError | null): RawItem['status'] {
  if (!error) return 'succeeded';
  return error.code === 'deadline_exceeded' ? 'expired' : 'failed';
}

function withoutOutcome(record: StoredRecord, status: TerminalStatus, index: number): RawItem {
  // A request that ended by itself has an outcome for each item; what is missing then has been lost.
  const lost = itemError('internal', 'the outcome of this item is no longer stored');
  return {
    id: idOf(record, index),
    index,
    status: status === 'cancelled' || status === 'expired' ? status : 'failed',
    outputs: null,
    error: record.error ?? lost,
    metrics: null,
    model_extra: {},
  };
}

function idOf({ document }: StoredRecord, index: number): string | null {
  return document.itemIds?.[index] ?? null;
}

/** A request that came with `inputs` wears the outcome of its one item. */
function resultOf(record: StoredRecord, status: TerminalStatus, items: RawItem[]): RawResult {
  const { document, acceptedAt, startedAt } = record;
  const only = document.hasItems ? undefined : items[0];
  const finishedAt = record.finishedAt ?? acceptedAt;
  return {
    request_id: record.requestId,
    model: document.model,
    version: document.version,
    digest: document.digest,
    status,
    hasItems: document.hasItems,
    items,
    error: record.error ?? only?.error ?? null,
    metrics: only?.metrics ?? null,
    model_extra: only?.model_extra ?? {},
    route: document.route,
    attempts: record.token - record.tokensSkipped,
    created_at: iso(acceptedAt),
    started_at: startedAt === null ? null : iso(startedAt),
    finished_at: iso(finishedAt),
    expires_at: iso(record.expiresAt ?? finishedAt + record.resultTtlMs),
    trace_id: document.traceId,
  };
}
