/** How `remuda score` and `remuda batches watch` end. */
import type { BulkJob } from '@remuda/schemas';
import { EXIT } from '../exit-codes.js';

export function endCode(job: BulkJob): number {
  const { status, progress, in_progress_at } = job;
  if (status === 'completed') return progress.rows_failed > 0 ? EXIT.partly : EXIT.ok;
  // Nobody here has asked for it: a full disk, a model that has gone, somebody else.
  if (status === 'paused') return EXIT.unfinished;
  // It ended before a row ran: the file or the mapping is not right.
  if (status === 'failed' && in_progress_at === null) return EXIT.usage;
  return EXIT.failed;
}
