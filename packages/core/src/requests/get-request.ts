/**
 * The record of one request, as it lies in the store. One whose deadline has passed and that nobody has looked at since
 * is ended first: who asks is never told that it still waits. Presented by present-request.ts.
 */
import { isTerminal } from '@remuda/schemas';
import type { Sight } from '../access/caller.js';
import { RemudaError } from '../errors.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import { seemsLate } from './expire-due.js';
import type { StoreGuard } from './store-guard.js';

export interface GetDeps {
  store: Pick<RequestStore, 'read'>;
  guard: StoreGuard;
  /** Unix milliseconds. */
  now(): number;
  /** Ends it if it is late; whether it was. */
  expire(record: StoredRecord): Promise<boolean>;
}

/**
 * What belongs to another tenant is not known either, in the very same words.
 * @throws RemudaError request_not_found, store_unavailable
 */
export async function getRequest(
  requestId: string,
  { store, guard, now, expire }: GetDeps,
  sight: Sight = null,
): Promise<StoredRecord> {
  const read = async (): Promise<StoredRecord | null> => (await store.read([requestId]))[0] ?? null;
  const record = await guard.run(async () => {
    const found = await read();
    if (!found || isTerminal(found.status) || !seemsLate(found, now())) return found;
    return (await expire(found)) ? read() : found;
  });
  // It may be kept longer than its retention, for what is to be done after its end.
  const over = record?.expiresAt != null && record.expiresAt <= now();
  const hidden = sight !== null && record?.document.tenant !== sight;
  if (!record || over || hidden || record.document.shadowOf !== undefined) {
    throw new RemudaError(
      'request_not_found',
      `no request "${requestId}" is known: it never was, or the time for which it was kept has passed`,
    );
  }
  return record;
}
