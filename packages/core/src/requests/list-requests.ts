/**
 * Lists requests, newest first, with filters. A cursor is the place of the last id that was looked at, so pages stay
 * right while requests come and go. One call looks at a bounded number of ids: a filter that matches little gives a
 * short page with a cursor, not a slow answer.
 */
import { InvalidInputError, type RequestRecord } from '@remuda/schemas';
import type { Sight } from '../access/caller.js';
import type { CursorSealer } from '../access/cursor-sealer.js';
import { RemudaError } from '../errors.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import { presentRequest } from './present-request.js';
import type { StoreGuard } from './store-guard.js';
import type { RequestFilter } from './submission.js';

/** Most ids that one call looks at. */
const SCAN_BOUND = 2_000;
/** Ids read at once where a filter may drop some. */
const SCAN_STEP = 200;

/** The place of an entry in the list of all requests. */
interface Place {
  at: number;
  id: string;
}

export interface ListDeps {
  store: Pick<RequestStore, 'list' | 'read'>;
  guard: StoreGuard;
  now(): number;
  /** For cursors of who does not see all: they may name a request of somebody else. */
  sealer: Pick<CursorSealer, 'seal' | 'open'>;
}

export interface RequestListing {
  requests: RequestRecord[];
  next_cursor: string | null;
}

/** @throws InvalidInputError invalid_request for a cursor that is none; RemudaError forbidden for the tenant of somebody else */
export async function listRequests(
  filter: RequestFilter,
  deps: ListDeps,
  sight: Sight = null,
): Promise<RequestListing> {
  if (sight === null) return scan(filter, deps);
  if (filter.tenant !== undefined && filter.tenant !== sight) throw otherTenant(filter.tenant);
  const { sealer, guard } = deps;
  const { cursor: sealed } = filter;
  const cursor = sealed === undefined ? undefined : await guard.run(() => sealer.open(sealed, sight));
  if (cursor === null) throw badCursor();
  const { requests, next_cursor: next } = await scan({ ...filter, cursor, tenant: sight }, deps);
  return { requests, next_cursor: next && (await guard.run(() => sealer.seal(next, sight))) };
}

function otherTenant(tenant: string): RemudaError {
  return new RemudaError(
    'forbidden',
    `requests of tenant "${tenant}" are shown to its own keys and to keys with the scope admin`,
    { scope: 'admin' },
  );
}

async function scan(filter: RequestFilter, deps: ListDeps): Promise<RequestListing> {
  const found: StoredRecord[] = [];
  const narrow = filter.tenant ?? filter.model ?? filter.status ?? filter.tag;
  const step = narrow === undefined ? Math.min(filter.limit + 1, SCAN_STEP) : SCAN_STEP;
  let place = startOf(filter);
  for (let scanned = 0; scanned < SCAN_BOUND; scanned += step) {
    const page = await deps.guard.run(() => readPage(deps.store, place, step));
    for (const { at, id, record } of page) {
      if (filter.since !== undefined && at < filter.since) return listing(found, null, deps);
      if (found.length === filter.limit) return listing(found, place, deps);
      place = { at, id };
      if (record && matches(record, filter)) found.push(record);
    }
    if (page.length < step) return listing(found, null, deps);
  }
  return listing(found, place, deps);
}

async function readPage(
  store: ListDeps['store'],
  place: Place | null,
  count: number,
): Promise<(Place & { record: StoredRecord | null })[]> {
  const places = await store.list(place, count);
  const records = await store.read(places.map(({ id }) => id));
  return places.map((entry, i) => ({ ...entry, record: records[i] ?? null }));
}

function matches(
  { document, status }: StoredRecord,
  { tenant, model, status: wanted, tag }: RequestFilter,
): boolean {
  if (document.shadowOf !== undefined) return false;
  if (tenant !== undefined && document.tenant !== tenant) return false;
  if (model !== undefined && document.model !== model) return false;
  if (wanted !== undefined && status !== wanted) return false;
  return tag === undefined || document.metadata.tags?.[tag.key] === tag.value;
}

function listing(found: readonly StoredRecord[], place: Place | null, { now }: ListDeps): RequestListing {
  const at = now();
  return {
    requests: found.map((record) => presentRequest(record, at)),
    next_cursor: place && Buffer.from(`${place.at}:${place.id}`).toString('base64url'),
  };
}

/** Strictly before this place the list begins. No id is empty, so `until` itself is included. */
function startOf({ cursor, until }: RequestFilter): Place | null {
  if (cursor !== undefined) return placeOf(cursor);
  return until === undefined ? null : { at: until + 1, id: '' };
}

function placeOf(cursor: string): Place {
  const match = /^(\d{1,15}):([A-Za-z0-9_-]{1,128})$/.exec(
    Buffer.from(cursor, 'base64url').toString('latin1'),
  );
  if (!match) throw badCursor();
  return { at: Number(match[1]), id: match[2] as string };
}

export function badCursor(): InvalidInputError {
  const finding = { path: 'query.cursor', expected: 'one that this server gave', received: 'another' };
  return new InvalidInputError([finding], 'invalid_request');
}
