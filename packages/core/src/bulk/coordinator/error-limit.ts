/** When a job has had too many errors. */
import type { MaxErrors } from '@remuda/schemas';
import { RemudaError } from '../../errors.js';

/** Of fewer rows a share says little: the first bad one would be half of them. */
const LEAST_ROWS_OF_A_SHARE = 100;

export interface ErrorCounts {
  done: number;
  failed: number;
  /** Of them, those that its owner has seen and let pass. */
  forgiven: number;
  /** All rows have an answer: then a share is what it is. */
  ended: boolean;
  first: readonly { row: number; code: string; message: string }[];
}

/** The error that ends the job; null: it may go on. */
export function tooManyErrors(limit: MaxErrors | undefined, counts: ErrorCounts): RemudaError | null {
  if (limit === undefined) return null;
  const failed = counts.failed - counts.forgiven;
  if (failed <= mostOf(limit, counts)) return null;
  const rows = counts.first.map(({ row, code, message }) => `row ${row}: ${code}: ${message}`);
  return new RemudaError(
    'too_many_errors',
    `${counts.failed} of ${counts.done} rows have failed, and max_errors is ${limit}. The first: ${rows.join('; ')}`,
    { failed: counts.failed, done: counts.done, first: [...counts.first] },
  );
}

function mostOf(limit: MaxErrors, { done, ended }: ErrorCounts): number {
  if (typeof limit === 'number') return limit;
  const base = ended ? done : Math.max(done, LEAST_ROWS_OF_A_SHARE);
  return (Number.parseFloat(limit) / 100) * base;
}

export interface CountedRows {
  rowsDone: number;
  rowsFailed: number;
  forgiven: number;
  firstFailures: ErrorCounts['first'];
}

/** The same of a whole job. @param ended all its rows have an answer */
export function errorsOfJob(
  limit: MaxErrors | undefined,
  { rowsDone, rowsFailed, forgiven, firstFailures }: CountedRows,
  ended: boolean,
): RemudaError | null {
  return tooManyErrors(limit, { done: rowsDone, failed: rowsFailed, forgiven, ended, first: firstFailures });
}
