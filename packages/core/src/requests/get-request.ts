/** The record of one request, as it lies in the store. Presented by present-request.ts. */
import type { Sight } from '../access/caller.js';
import { RemudaError } from '../errors.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import type { StoreGuard } from './store-guard.js';

/**
 * What belongs to another tenant is not known either, in the very same words.
 * @throws RemudaError request_not_found, store_unavailable
 */
export async function getRequest(
  requestId: string,
  { store, guard }: { store: Pick<RequestStore, 'read'>; guard: StoreGuard },
  sight: Sight = null,
): Promise<StoredRecord> {
  const [record] = await guard.run(() => store.read([requestId]));
  // It may be kept longer than its retention, for what is to be done after its end.
  const over = record?.expiresAt != null && record.expiresAt <= Date.now();
  const hidden = sight !== null && record?.document.tenant !== sight;
  if (!record || over || hidden || record.document.shadowOf !== undefined) {
    throw new RemudaError(
      'request_not_found',
      `no request "${requestId}" is known: it never was, or the time for which it was kept has passed`,
    );
  }
  return record;
}
