/** How far a bulk job is, in one line. */
import type { BulkJob } from '@remuda/schemas';
import { bar } from '../terminal/bar.js';
import { duration } from '../terminal/figures.js';

const BAR_COLUMNS = 20;

/** For a terminal: the line that is written anew. */
export function progressLine(job: BulkJob): string {
  return `  ${bar(shareDone(job) ?? 0, BAR_COLUMNS)} ${progressText(job)}`;
}

/** For a log. */
export function progressText(job: BulkJob): string {
  const { progress, status } = job;
  const share = shareDone(job);
  return [
    share === null ? undefined : `${(share * 100).toFixed(1)} %`,
    rowsText(job),
    progress.rows_per_s === null ? undefined : `${rate(progress.rows_per_s)} rows/s`,
    status === 'in_progress' && progress.eta_s !== null ? `ETA ${duration(progress.eta_s)}` : stepText(job),
    progress.rows_failed > 0 ? `${count(progress.rows_failed)} failed` : undefined,
  ]
    .filter((part) => part !== undefined)
    .join('  ');
}

/** By rows where their number is known, else by bytes; null: nothing to measure it by. */
export function shareDone({ progress, status }: BulkJob): number | null {
  const { rows_total, rows_done, rows_in_flight, bytes_total, bytes_read } = progress;
  if (status === 'completed') return 1;
  if (rows_total !== null && rows_total > 0) return Math.min(1, rows_done / rows_total);
  if (bytes_total === null || bytes_total === 0) return null;
  // What is read is not done yet.
  const done = rows_in_flight > 0 ? rows_done / (rows_done + rows_in_flight) : 1;
  return Math.min(1, (bytes_read / bytes_total) * done);
}

function rowsText({ progress: { rows_total, rows_done } }: BulkJob): string {
  return rows_total === null
    ? `${count(rows_done)} rows`
    : `${count(rows_done)} of ${count(rows_total)} rows`;
}

function stepText({ status }: BulkJob): string | undefined {
  const steps: Partial<Record<BulkJob['status'], string>> = {
    validating: 'looking at the input',
    finalizing: 'joining the output',
    cancelling: 'cancelling',
    paused: 'paused',
  };
  return steps[status];
}

export function count(value: number): string {
  return value.toLocaleString('en-US');
}

export function rate(perSecond: number): string {
  return perSecond >= 100 ? count(Math.round(perSecond)) : perSecond.toFixed(1);
}
