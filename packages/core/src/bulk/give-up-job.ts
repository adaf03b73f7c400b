/** The end of a job that no coordinator can bring to its end: what is done stays in its work folder, for :resume. */
import { isBulkTerminal } from '@remuda/schemas';
import { itemError } from '../errors.js';
import type { Clock } from '../lifecycle/clock.js';
import type { BulkJobStore } from './job-store.js';

/** @param reason what the last of them died of */
export async function giveUpJob(
  store: BulkJobStore,
  id: string,
  reason: string,
  clock: Pick<Clock, 'now'>,
): Promise<void> {
  const epoch = await store.take(id, 0);
  const job = await store.read(id);
  if (epoch === null || !job) return;
  const now = clock.now();
  // It cannot even be told: then it is left at that.
  if (isBulkTerminal(job.state.status)) {
    await store.write(id, epoch, job.state, now);
    return;
  }
  const error = itemError(
    'internal',
    `the coordinator of the job died again and again before it had done anything: ${reason}. The log of the worker has more; once the cause is gone, resume the job: nothing that was done is lost`,
  );
  const faults = [{ code: error.code, message: error.message, param: null, line: null }];
  const times = { ...job.state.times, failed: now };
  // Left open: whoever takes it up next tells those who want to know.
  await store.write(id, epoch, { ...job.state, status: 'failed', reason: error, faults, times });
}
