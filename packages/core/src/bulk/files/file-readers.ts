/** Which files of the server jobs still read: those are not deleted under them. */
import { isBulkTerminal } from '@remuda/schemas';
import type { BulkJobStore } from '../job-store.js';

/** More jobs than can wait at a time; each is one question to Redis. */
const MOST_JOBS = 10_000;

/** The job by the id of the file, of all jobs that have not ended: paused ones, too. */
export async function fileReaders(
  store: Pick<BulkJobStore, 'open' | 'readMany'>,
): Promise<ReadonlyMap<string, string>> {
  const jobs = await store.readMany(await store.open(Number.POSITIVE_INFINITY, MOST_JOBS));
  const readers = new Map<string, string>();
  for (const job of jobs) {
    if (!job || isBulkTerminal(job.state.status)) continue;
    const { fileId } = job.spec.input;
    if (fileId !== null) readers.set(fileId, job.spec.id);
  }
  return readers;
}
