/**
 * Turns a checked submission into what is stored: one frame for each item, the document with its units, deadline and
 * fingerprint. Pure but for ids and the time. Next: the store, from submit-request.ts.
 */
import { createHash } from 'node:crypto';
import {
  encodeFrame,
  type ModelSignature,
  type RawTensor,
  type RequestMetadata,
  type ResultCacheRule,
  type Route,
  type WebhookOption,
} from '@remuda/schemas';
import { compatibilityKey } from '../batching/compatibility.js';
import { canonicalJson } from '../canonical-json.js';
import { deadlinesOf } from '../deadlines/deadlines-of.js';
import { newNonce, newRequestId } from '../ids.js';
import { type Acceptance, INLINE_PAYLOAD_BYTES } from '../store/request-store.js';
import type { RequestDocument, RequestWebhook, UnitRun } from '../store/stored-record.js';
import { cacheTicket } from './cache-ticket.js';
import { hashItem } from './content-hash.js';
import type { Submission, SubmittedItem } from './submission.js';

export interface Preparation {
  submission: Submission;
  signature: ModelSignature;
  route: Route;
  notices: string[];
  /** Of the model; absent: it has no result cache. */
  resultCache?: ResultCacheRule | undefined;
  /** Where the request asks for none. */
  defaultResultTtlS: number;
  /** Something is to be done when it has ended, for its webhook or for an endpoint of its tenant, say. */
  after: boolean;
  /** Unix milliseconds. */
  now: number;
}

/** Nothing shares a batch with a chunk. */
const CHUNK_GROUP = 'chunk';
const DEFAULT_METADATA: RequestMetadata = { priority: 5 };

export function prepareRequest(preparation: Preparation): Acceptance {
  const { submission, defaultResultTtlS, after, now } = preparation;
  const { items, options, reserved, chunk } = submission;
  const metadata = options.metadata ?? DEFAULT_METADATA;
  const supplied = options.request_id;
  // What is compared with a repeated call must not depend on how its header was written.
  const asTheyCame = supplied === undefined && options.parameters === undefined;
  const payloads = items.map((item) => (asTheyCame && item.frame) || payloadOf(item, options.parameters));
  const deadlines = deadlinesOf(metadata, now);
  return {
    requestId: supplied ?? chunk?.id ?? reserved?.requestId ?? newRequestId(),
    nonce: newNonce(),
    // An id of our own making is never sent again, so nothing is compared with it.
    fingerprint: supplied === undefined ? (reserved?.fingerprint ?? '') : fingerprintOf(submission),
    acceptedAt: now,
    deadline: deadlines.start,
    finishDeadline: deadlines.finish,
    after,
    ...(reserved && { onceMs: reserved.onceMs }),
    resultTtlMs: (metadata.result_ttl_s ?? defaultResultTtlS) * 1000,
    document: documentOf(preparation, metadata, payloads),
    payloads,
  };
}

function payloadOf(item: SubmittedItem, parameters: Record<string, unknown> | undefined): Buffer {
  return encodeFrame('inputs', item.tensors, parameters && { parameters });
}

function documentOf(
  { submission, signature, route, notices, resultCache }: Preparation,
  metadata: RequestMetadata,
  payloads: readonly Buffer[],
): RequestDocument {
  const { items, options, hasItems, tenant, keyId, traceId, chunk } = submission;
  const units = chunk
    ? [[1, chunk.rows, CHUNK_GROUP] satisfies UnitRun]
    : unitsOf(items, signature, options.parameters);
  const [only] = payloads;
  const cache = resultCache && cacheTicket(submission, signature, resultCache);
  return {
    model: signature.model,
    version: signature.version,
    digest: signature.digest,
    tenant,
    ...(keyId === null ? {} : { keyId }),
    rows: units.reduce((sum, [count, rows]) => sum + count * rows, 0),
    hasItems,
    itemIds: items.some((item) => item.id !== null) ? items.map((item) => item.id) : undefined,
    units,
    parameters: options.parameters,
    metadata,
    route,
    traceId,
    ...(options.webhook === undefined ? {} : { webhook: webhookOf(options.webhook) }),
    inline: payloads.length === 1 && (only as Buffer).length <= INLINE_PAYLOAD_BYTES,
    notices,
    ...(cache && { cache }),
  };
}

/** As it is stored. */
export function webhookOf(option: WebhookOption): RequestWebhook {
  if (typeof option === 'string') return { url: option, payload: 'full' };
  return { ...option, payload: option.payload ?? 'full' };
}

/** Neighbours of equal rows and equal key are one run: a thousand like items are one entry of the job. */
function unitsOf(
  items: readonly SubmittedItem[],
  signature: ModelSignature,
  parameters: Record<string, unknown> | undefined,
): UnitRun[] {
  const units: UnitRun[] = [];
  for (const { tensors } of items) {
    const rows = rowsOf(tensors, signature);
    const group = compatibilityKey({ signature, tensors, parameters, version: signature.version });
    const last = units.at(-1);
    if (last && last[1] === rows && last[2] === group) last[0]++;
    else units.push([1, rows, group]);
  }
  return units;
}

/** The edge has checked that all inputs agree, so the first that has rows tells. */
function rowsOf(tensors: readonly RawTensor[], signature: ModelSignature): number {
  for (const { name, batch_axis: axis } of signature.inputs) {
    if (axis === null) continue;
    const rows = tensors.find((tensor) => tensor.name === name)?.shape[axis];
    if (rows !== undefined) return rows;
  }
  return 1;
}

/**
 * Model and version as they were asked for: a repeated call must not become another request because one was added. With
 * the tenant, so that nobody is answered with a request of somebody else, however alike the two are. Inputs as what they
 * hold, whichever form they came in: JSON, binary, an entry of a batch.
 */
function fingerprintOf({ model, options, hasItems, items, tenant }: Submission): string {
  const { version = null, parameters = null } = options;
  const hash = createHash('sha256').update(canonicalJson([model, version, hasItems, parameters, tenant]));
  for (const { id, tensors } of items) hashItem(hash, id, tensors);
  return hash.digest('base64url');
}
