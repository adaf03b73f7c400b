/** Webhooks about the end of a bulk job: put in again after a crash, they are the same. */
import type { BulkEventData, WebhookEvent } from '@remuda/schemas';
import type { WebhookOutbox } from '../../webhooks/outbox.js';
import type { StoredBulkJob } from '../job-record.js';
import { presentBulkJob } from '../present-job.js';

/** There is no event of its own for a job that has expired: it has not come to its end. */
const EVENTS: Partial<Record<string, WebhookEvent>> = {
  completed: 'batch.completed',
  failed: 'batch.failed',
  expired: 'batch.failed',
  cancelled: 'batch.cancelled',
};

export async function tellEnd(
  job: StoredBulkJob,
  outbox: Pick<WebhookOutbox, 'enqueueEvent'>,
): Promise<void> {
  const { spec, state } = job;
  const type = EVENTS[state.status];
  if (!type) return;
  const ended = state.times[state.status as 'completed'] ?? spec.createdAt;
  const data: BulkEventData = { batch: presentBulkJob(job) };
  await outbox.enqueueEvent({
    type,
    tenant: spec.tenant,
    keyId: spec.keyId,
    subject: spec.id,
    // A job that was resumed or retried ends again, which is another event.
    nonce: `${state.round}.${ended}`,
    traceId: spec.traceId,
    at: ended,
    own: spec.webhook,
    data: async () => data,
  });
}
