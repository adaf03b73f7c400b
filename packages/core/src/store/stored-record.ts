/**
 * The record of a request as it lies in Redis: `document` is what is fixed at acceptance, the rest is what changes.
 * Presented to people by requests/present-request.ts.
 */
import type {
  ItemError,
  RequestMetadata,
  RequestStatus,
  Route,
  WebhookEvent,
  WebhookPayload,
} from '@remuda/schemas';
import type { CacheTicket } from './cache-store.js';

/** Written once. `units` runs along the items: [how many, rows each, compatibility key]. */
export interface RequestDocument {
  model: string;
  version: string;
  digest: string;
  tenant: string;
  /** Id of the API key that it came with; absent: none was asked for. */
  keyId?: string;
  rows: number;
  /** False: the request came with `inputs`, and its one item is presented as the request itself. */
  hasItems: boolean;
  /** Names that the user gave to items; absent when there are none. */
  itemIds?: (string | null)[];
  units: UnitRun[];
  parameters?: Record<string, unknown>;
  metadata: RequestMetadata;
  route: Route;
  traceId: string;
  /** Set on the copy of a request for a shadow version: the id of the request that was copied. */
  shadowOf?: string;
  /** Where the request itself asked to be told of its end. */
  webhook?: RequestWebhook;
  /** Large payloads stand under keys of their own. */
  inline: boolean;
  notices: string[];
  /** Where its model has a result cache and it may use it. */
  cache?: CacheTicket;
}

export interface RequestWebhook {
  url: string;
  /** Absent: however it ends. */
  events?: WebhookEvent[];
  payload: WebhookPayload;
  /** Absent: that of the tenant signs. Never shown, in no record, log or list. */
  secret?: string;
}

export type UnitRun = [count: number, rows: number, group: string];

export interface StoredRecord {
  requestId: string;
  document: RequestDocument;
  status: RequestStatus;
  nonce: string;
  items: number;
  itemsOk: number;
  itemsDone: number;
  /** The token of the attempt that holds it, 0 before the first. */
  token: number;
  /** Tokens that no attempt had: a re-route leaves some out, so that whoever held the old job is fenced. */
  tokensSkipped: number;
  /** How often its one item was begun again, since the worker or runner that had begun it was lost; 0 with several items. */
  begunAgain: number;
  acceptedAt: number;
  startedAt: number | null;
  finishedAt: number | null;
  expiresAt: number | null;
  /** By which it must begin to run, Unix milliseconds; 0: none. */
  deadline: number;
  /** By which it must have ended, Unix milliseconds; 0: none. */
  finishDeadline: number;
  resultTtlMs: number;
  error: ItemError | null;
  /** The request whose answer it waits for, or has got; null: it runs by itself. */
  follows: string | null;
}

/** The fields that readStoredRecord wants, in its order. */
export const RECORD_FIELDS = [
  'doc',
  's',
  'nonce',
  'n',
  'n:ok',
  'done',
  'tok',
  'at',
  'start',
  'fin',
  'exp',
  'dl',
  'ttl',
  'err',
  'route',
  'skip',
  'fdl',
  'fol',
  'again',
] as const;

/** Fields of the hash as a record; null where there is none. */
export function readStoredRecord(requestId: string, fields: readonly (string | null)[]): StoredRecord | null {
  const [
    doc,
    status,
    nonce,
    n,
    ok,
    done,
    token,
    at,
    start,
    fin,
    exp,
    deadline,
    ttl,
    err,
    route,
    skip,
    fdl,
    fol,
    again,
  ] = fields;
  if (!doc || !status) return null;
  const items = Number(n);
  const finished = fin !== null;
  const single = items === 1;
  const document = JSON.parse(doc) as RequestDocument;
  // A request that was moved to another class has its new route beside the document, which is written once.
  if (route) document.route = JSON.parse(route) as Route;
  return {
    requestId,
    document,
    status: status as RequestStatus,
    nonce: nonce ?? '',
    items,
    // Counters are kept only where there is more than one item.
    itemsOk: single ? Number(status === 'succeeded') : Number(ok ?? 0),
    itemsDone: single ? Number(finished) : Number(done ?? 0),
    token: Number(token ?? 0),
    tokensSkipped: Number(skip ?? 0),
    begunAgain: Number(again ?? 0),
    acceptedAt: Number(at),
    startedAt: start ? Number(start) : null,
    finishedAt: finished ? Number(fin) : null,
    expiresAt: exp ? Number(exp) : null,
    deadline: Number(deadline ?? 0),
    finishDeadline: Number(fdl ?? 0),
    resultTtlMs: Number(ttl),
    error: err ? (JSON.parse(err) as ItemError) : null,
    follows: fol ?? null,
  };
}
