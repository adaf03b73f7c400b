/**
 * Lists requests, newest first, with filters. A cursor is the place of the last id that was looked at, so pages stay
 * right while requests come and go. One call looks at a bounded number of ids: a filter that matches little gives a
 * short page with a cursor, not a slow answer.
 */
import type { RequestRecord } from '@remuda/schemas';
import type { Sight } from '../access/caller.js';
import { isChunkId } from '../bulk/chunk-door.js';
import { RemudaError } from '../errors.js';
import type { Place } from '../store/newest-first.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import { type CursorDeps, giveCursor, takeCursor } from './page-cursor.js';
import { presentRequest } from './present-request.js';
import type { RequestFilter } from './submission.js';

/** Most ids that one call looks at. */
const SCAN_BOUND = 2_000;
/** Ids read at once where a filter may drop some. */
const SCAN_STEP = 200;

export interface ListDeps extends CursorDeps {
  store: Pick<RequestStore, 'list' | 'read'>;
  now(): number;
}

/** What was found, and how far it was looked; null: to the end. */
interface Scanned {
  found: readonly StoredRecord[];
  place: Place | null;
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
  if (sight !== null && filter.tenant !== undefined && filter.tenant !== sight)
    throw otherTenant(filter.tenant);
  const start = (await takeCursor(filter.cursor, sight, deps)) ?? startOf(filter);
  const { found, place } = await scan({ ...filter, ...(sight !== null && { tenant: sight }) }, start, deps);
  const at = deps.now();
  return {
    requests: found.map((record) => presentRequest(record, at)),
    next_cursor: await giveCursor(place, sight, deps),
  };
}

function otherTenant(tenant: string): RemudaError {
  return new RemudaError(
    'forbidden',
    `requests of tenant "${tenant}" are shown to its own keys and to keys with the scope admin`,
    { scope: 'admin' },
  );
}

async function scan(filter: RequestFilter, start: Place | null, deps: ListDeps): Promise<Scanned> {
  const found: StoredRecord[] = [];
  const narrow = filter.tenant ?? filter.model ?? filter.status ?? filter.tag;
  const step = narrow === undefined ? Math.min(filter.limit + 1, SCAN_STEP) : SCAN_STEP;
  let place = start;
  for (let scanned = 0; scanned < SCAN_BOUND; scanned += step) {
    const page = await deps.guard.run(() => readPage(deps.store, place, step));
    for (const { at, id, record } of page) {
      if (filter.since !== undefined && at < filter.since) return { found, place: null };
      if (found.length === filter.limit) return { found, place };
      place = { at, id };
      if (record && matches(record, filter)) found.push(record);
    }
    if (page.length < step) return { found, place: null };
  }
  return { found, place };
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
  { requestId, document, status }: StoredRecord,
  { tenant, model, status: wanted, tag }: RequestFilter,
): boolean {
  if (document.shadowOf !== undefined || isChunkId(requestId)) return false;
  if (tenant !== undefined && document.tenant !== tenant) return false;
  if (model !== undefined && document.model !== model) return false;
  if (wanted !== undefined && status !== wanted) return false;
  return tag === undefined || document.metadata.tags?.[tag.key] === tag.value;
}

/** Strictly before this place the list begins. No id is empty, so `until` itself is included. */
function startOf({ until }: RequestFilter): Place | null {
  return until === undefined ? null : { at: until + 1, id: '' };
}
