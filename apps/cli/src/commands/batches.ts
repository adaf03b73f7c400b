/** `remuda batches …`: the bulk jobs of a server: look at them, steer them, fetch what they have written. */
import type { BulkJob } from '@remuda/schemas';
import { ApiBulk } from '../bulk/api-bulk.js';
import type { BulkAction } from '../bulk/bulk-control.js';
import { downloadFile } from '../bulk/download-file.js';
import { endCode } from '../bulk/end-code.js';
import { followJob } from '../bulk/follow-job.js';
import { jobLines, statusPaint } from '../bulk/job-text.js';
import { outputPlace } from '../bulk/places.js';
import { count, shareDone } from '../bulk/progress-text.js';
import { refuseExisting } from '../bulk/score-plan.js';
import { CliError, usageError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { megabytes } from '../terminal/figures.js';
import { withProgress } from '../terminal/progress.js';
import { type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { type SignalHost, StopSignals } from '../up/stop-signals.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';

export interface PageOptions extends ApiOptions {
  limit?: number;
  after?: string;
}

export async function listBatches(
  options: PageOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const { limit, after } = options;
  const page = await new ApiBulk(apiOf(options, config)).list({ limit, after });
  if (options.json) printJson(terminal, page);
  else {
    for (const line of listLines(page.data, terminal)) terminal.out(line);
    if (page.has_more) terminal.note(`There are more: --after ${page.last_id}`);
  }
  return EXIT.ok;
}

const COLUMNS: readonly Column[] = [
  { title: 'batch' },
  { title: 'model', shrinkTo: 10, wrap: true },
  { title: 'status' },
  { title: 'done', align: 'right' },
  { title: 'rows', align: 'right' },
  { title: 'failed', align: 'right' },
  { title: 'priority', align: 'right' },
  { title: 'created' },
];

function listLines(jobs: readonly BulkJob[], { colours, width }: Terminal): string[] {
  if (jobs.length === 0) return ['No bulk jobs: start one with `remuda score`.'];
  const rows = jobs.map((job) => {
    const { id, model, version, status, progress, priority, created_at } = job;
    const share = shareDone(job);
    return [
      id,
      model === null ? 'several' : `${model}${version === null ? '' : `@${version}`}`,
      { text: status, paint: statusPaint(status, colours) },
      share === null ? '' : `${(share * 100).toFixed(1)} %`,
      count(progress.rows_total ?? progress.rows_done),
      count(progress.rows_failed),
      String(priority),
      new Date(created_at * 1_000).toISOString().slice(0, 19).replace('T', ' '),
    ];
  });
  return tableLines(COLUMNS, rows, { width, paintTitle: colours.dim });
}

export async function showBatch(id: string, options: ApiOptions, context: CommandContext): Promise<number> {
  return show(await bulkOf(options, context).get(id), options, context);
}

function bulkOf(options: ApiOptions, { config }: CommandContext): ApiBulk {
  return new ApiBulk(apiOf(options, config));
}

function show(job: BulkJob, { json }: ApiOptions, { terminal }: CommandContext): number {
  if (json) printJson(terminal, job);
  else for (const line of jobLines(job, terminal)) terminal.out(line);
  return EXIT.ok;
}

/** Follows it to its end. Ctrl-C ends the looking on, not the job. */
export async function watchBatch(
  id: string,
  options: ApiOptions,
  context: CommandContext,
  host: SignalHost = process,
): Promise<number> {
  const control = bulkOf(options, context);
  const signals = new StopSignals(host);
  try {
    const first = await control.get(id);
    const { job, end } = await followJob(first, {
      control,
      terminal: context.terminal,
      asked: signals.first,
    });
    show(job, options, context);
    return end === 'asked' ? (await signals.first).exitCode : endCode(job);
  } finally {
    signals.close();
  }
}

export async function steerBatch(
  id: string,
  action: BulkAction,
  options: ApiOptions,
  context: CommandContext,
): Promise<number> {
  return show(await bulkOf(options, context).act(id, action), options, context);
}

export async function setBatchPriority(
  id: string,
  priority: number,
  options: ApiOptions,
  context: CommandContext,
): Promise<number> {
  return show(await bulkOf(options, context).setPriority(id, priority), options, context);
}

export interface OutputOptions extends ApiOptions {
  out?: string;
  /** The rows that failed in place of the output. */
  errors?: boolean;
  overwrite?: boolean;
}

/** Brings the output of a job that has ended, or its errors, to a file. */
export async function batchOutput(
  id: string,
  options: OutputOptions,
  context: CommandContext,
): Promise<number> {
  const { terminal, config } = context;
  const place = options.out === undefined ? undefined : outputPlace(options.out, config.cwd);
  if (place?.kind !== 'file') throw usageError('--out is missing: the file that it is written to.');
  const { overwrite = false } = options;
  refuseExisting([place], overwrite);
  const api = bulkOf(options, context);
  const file = await api.file(fileOf(await api.get(id), options.errors === true));
  await withProgress(terminal, `fetching ${place.path}`, (say) =>
    downloadFile(api, file, place.path, {
      overwrite,
      onBytes: (bytes) => say(`${megabytes(bytes)} of ${megabytes(file.bytes)}`),
    }),
  );
  if (options.json) printJson(terminal, { file, saved: place.path });
  else terminal.out(place.path);
  return EXIT.ok;
}

function fileOf({ id, status, output, output_file_id, error_file_id }: BulkJob, errors: boolean): string {
  const found = errors ? error_file_id : output_file_id;
  if (found !== null) return found;
  const uri = errors ? output.errors_uri : output.uri;
  if (uri !== null) throw new CliError(`The server has written it to ${uri}.`);
  if (errors && status === 'completed')
    throw new CliError(`No row of ${id} has failed: there is no file of errors.`);
  const what = errors ? 'file of errors' : 'output';
  throw new CliError(`${id} is ${status}, and has no ${what}.`, EXIT.unfinished);
}
