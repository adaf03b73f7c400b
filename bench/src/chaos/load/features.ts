/** What this build of the API can do, and the load therefore asks for. */
import type { ProcessSlot } from '../fleet/process-slot.js';
import type { ApiClient } from './api-client.js';

/** Whether it knows Idempotency-Key: an older one would take the same call for another. */
export async function knowsIdempotencyKey(client: ApiClient, api: ProcessSlot): Promise<boolean> {
  const answer = await client.call(api, 'GET', '/openapi.json');
  return JSON.stringify(answer?.body ?? {})
    .toLowerCase()
    .includes('idempotency-key');
}
