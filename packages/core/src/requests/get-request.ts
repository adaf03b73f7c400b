/** The record of one request, as it lies in the store. Presented by present-request.ts. */
import { RemudaError } from '../errors.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import type { StoreGuard } from './store-guard.js';

/** @throws RemudaError request_not_found, store_unavailable */
export async function getRequest(
  requestId: string,
  { store, guard }: { store: Pick<RequestStore, 'read'>; guard: StoreGuard },
): Promise<StoredRecord> {
  const [record] = await guard.run(() => store.read([requestId]));
  // It may be kept longer than its retention, for what is to be done after its end.
  const over = record?.expiresAt != null && record.expiresAt <= Date.now();
  if (!record || over || record.document.shadowOf !== undefined) {
    throw new RemudaError(
      'request_not_found',
      `no request "${requestId}" is known: it never was, or the time for which it was kept has passed`,
    );
  }
  return record;
}
