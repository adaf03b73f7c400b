/**
 * A request that was refused (Redis did not answer in time) is taken back; its job may be in the hands of a worker by
 * then, and stays. When the same id is sent again and accepted, that old job stands where the new one should, and it
 * knows the old request alone: whoever holds it asks here for whom it is now.
 */
import { isTerminal } from '@remuda/schemas';
import { type JobTicket, ticketOf } from '../queue/job-queue.js';
import { type Partition, queueName } from '../queue/partitions.js';
import type { RequestStore } from '../store/request-store.js';
import { partitionOfRecord } from './submit-request.js';

/** The ticket of the request that has the id of a job whose own is gone; null: there is none, or it has a job elsewhere. */
export async function acceptedAnew(
  { requestId, nonce }: Pick<JobTicket, 'requestId' | 'nonce'>,
  partition: Partition,
  store: Pick<RequestStore, 'read'>,
): Promise<JobTicket | null> {
  const [record] = await store.read([requestId]);
  if (!record || isTerminal(record.status) || record.nonce === nonce) return null;
  // It waits for the answer of another, and has no job at all.
  if (record.follows !== null && record.status === 'queued') return null;
  return queueName(partitionOfRecord(record)) === queueName(partition) ? ticketOf(record) : null;
}
