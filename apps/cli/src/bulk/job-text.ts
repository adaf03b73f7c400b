/** A bulk job as a person reads it: what it has done, how fast and where, and what to do next. */
import { type BulkJob, type BulkJobStatus, isBulkTerminal } from '@remuda/schemas';
import { itemErrorText } from '../api/problem-text.js';
import { duration } from '../terminal/figures.js';
import { type Column, tableLines } from '../terminal/table.js';
import type { Colours, Terminal } from '../terminal/terminal.js';
import { count, progressText, rate } from './progress-text.js';

/** Where the files of a job lie, as the person at the terminal sees them. */
export interface ShownPlaces {
  output?: string | undefined;
  errors?: string | undefined;
}

const DEVICE_COLUMNS: readonly Column[] = [
  { title: '  worker', shrinkTo: 12 },
  { title: 'device' },
  { title: 'rows', align: 'right' },
  { title: 'share', align: 'right' },
  { title: 'device-seconds', align: 'right' },
];

export function jobLines(job: BulkJob, { colours, width }: Terminal, places: ShownPlaces = {}): string[] {
  const { id, model, version, progress, status } = job;
  const whose = model === null ? '' : `${model}${version === null ? '' : ` version ${version}`}`;
  return [
    `${colours.bold(id)}  ${statusPaint(status, colours)(status)}  ${colours.dim(whose)}`,
    ...tableLines([{ title: '' }, { title: '', shrinkTo: 30 }], factsOf(job, places), { width }).slice(1),
    ...(progress.devices.length > 0
      ? tableLines(DEVICE_COLUMNS, deviceRows(job), { width, paintTitle: colours.dim })
      : []),
    ...reasonLines(job, colours),
  ];
}

function factsOf(job: BulkJob, places: ShownPlaces): string[][] {
  const { progress, status, output, output_file_id, error_file_id, priority } = job;
  // Of a job that failed before it ran, nothing lies there.
  const isGiven = status !== 'failed' || progress.rows_done > 0;
  const written = isGiven ? (places.output ?? output.uri ?? output_file_id) : null;
  const failedTo = places.errors ?? output.errors_uri ?? error_file_id;
  // What has ended without a number of rows to compare with has come this far.
  const isCount = status === 'completed' || (isBulkTerminal(status) && progress.rows_total === null);
  return [
    ['  rows', isCount ? count(progress.rows_done) : progressText(job)],
    ['  failed', count(progress.rows_failed)],
    ...(progress.rows_repeated > 0
      ? [['  run again', `${count(progress.rows_repeated)} after a crash, or with rows that had failed`]]
      : []),
    ['  time', duration(progress.elapsed_s)],
    ...(progress.elapsed_s > 0
      ? [['  rows/s', `${rate(progress.rows_done / progress.elapsed_s)} from beginning to end`]]
      : []),
    ['  device-seconds', progress.device_seconds.toFixed(1)],
    ...(isBulkTerminal(status) ? [] : [['  priority', String(priority)]]),
    ...(written ? [[isBulkTerminal(status) ? '  output' : '  output to', written]] : []),
    ...(failedTo && progress.rows_failed > 0 ? [['  errors', failedTo]] : []),
  ];
}

function deviceRows({ progress: { devices } }: BulkJob): string[][] {
  const all = devices.reduce((sum, { rows }) => sum + rows, 0);
  return devices.map(({ worker_id, device, rows, device_seconds }) => [
    `  ${worker_id}`,
    device,
    count(rows),
    all > 0 ? `${((rows / all) * 100).toFixed(0)} %` : '',
    device_seconds.toFixed(1),
  ]);
}

/** Most errors that are told; the object has all. */
const MOST_ERRORS = 10;

/** Why it does not go on, and what goes on with it. */
export function reasonLines({ reason, errors, hint, status }: BulkJob, { red, dim }: Colours): string[] {
  const lines = (errors?.data ?? []).filter(({ message }) => message !== reason?.message);
  return [
    ...(reason ? [red(`  ${itemErrorText(reason)}`)] : []),
    ...lines
      .slice(0, MOST_ERRORS)
      .map(({ code, message, line }) => `  ${line === null ? '' : `line ${line}: `}${code}: ${message}`),
    ...(lines.length > MOST_ERRORS ? [dim(`  and ${lines.length - MOST_ERRORS} more`)] : []),
    ...(hint && status !== 'completed' ? [`  ${hint}`] : []),
  ];
}

export function statusPaint(status: BulkJobStatus, colours: Colours): (text: string) => string {
  if (status === 'completed') return colours.green;
  if (status === 'failed' || status === 'expired') return colours.red;
  return status === 'paused' || status === 'cancelled' ? colours.yellow : colours.reset;
}
