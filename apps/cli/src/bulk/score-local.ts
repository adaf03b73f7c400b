/**
 * `remuda score --local`: the whole of it on this machine, without a server. Ctrl-C pauses: what is under way is
 * finished, everything stops, and the command that goes on is printed. A second one stops at once; then only what was
 * under way is run again.
 */
import { rm } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { Readable } from 'node:stream';
import { fetchInput } from '@remuda/core/bulk/input/fetch-input';
import { newBulkJobId } from '@remuda/core/ids';
import type { BulkJob } from '@remuda/schemas';
import { CliError, Interrupted, reasonOf, usageError } from '../cli-error.js';
import { modelNamed } from '../commands/model-of-repository.js';
import { EXIT } from '../exit-codes.js';
import { megabytes } from '../terminal/figures.js';
import { withProgress } from '../terminal/progress.js';
import type { StopSignals } from '../up/stop-signals.js';
import { modelsFolderOf, projectOf } from '../workspace.js';
import type { BulkControl } from './bulk-control.js';
import { errorsPathOf } from './errors-path.js';
import { endOf, followJob } from './follow-job.js';
import { LocalBulk } from './local-bulk.js';
import {
  hasLocalRecord,
  type LocalRecord,
  readLocalRecord,
  removeLocalFolder,
  writeLocalRecord,
} from './local-record.js';
import { localFolderOf, type OutputPlace, outputPlace, workFolderOf } from './places.js';
import type { Scoring } from './score-api.js';
import { type ScoreOptions, type ScorePlan, scorePlan } from './score-plan.js';
import { shellCommand } from './shell-words.js';
import { showEnd } from './show-end.js';

export async function scoreLocally(scoring: Scoring): Promise<number> {
  const { options, context } = scoring;
  refuseServerOptions(options);
  const { cwd } = context.config;
  if (options.resume !== undefined) {
    const folder = stateFolder(outputPlace(options.out ?? missingOut(), cwd), cwd);
    return run(scoring, { folder, record: await recordOf(folder, options.resume), isNew: false });
  }
  const plan = scorePlan(options, cwd);
  const folder = stateFolder(plan.output, cwd);
  await refuseUnfinished(folder, options);
  return run(scoring, { folder, record: await newRecord(scoring, plan, folder), isNew: true });
}

function refuseServerOptions({ detach, url, idempotencyKey }: ScoreOptions): void {
  const given = { '--detach': detach, '--url': url, '--idempotency-key': idempotencyKey };
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) throw usageError(`${name} is about a server; it cannot stand with --local.`);
  }
}

function missingOut(): never {
  throw usageError('--out is missing: the output of the job, beside which its state lies.');
}

/** Beside the output; of an output that lies elsewhere, in the project. */
function stateFolder(output: OutputPlace, cwd: string): string {
  if (output.kind === 'file') return localFolderOf(output.path);
  const name = output.uri.replace(/[^A-Za-z0-9._-]+/g, '_');
  return join(projectOf(cwd).stateFolder, 'bulk', name);
}

async function recordOf(folder: string, id: string): Promise<LocalRecord> {
  const record = await readLocalRecord(folder);
  if (record.id === id) return record;
  throw usageError(`${folder} holds the job ${record.id}, not ${id}.`);
}

/** Another job for the same output would take the place of what that one has done. */
async function refuseUnfinished(folder: string, options: ScoreOptions): Promise<void> {
  if (!hasLocalRecord(folder)) return;
  if (options.overwrite) return forget(folder);
  const { id } = await readLocalRecord(folder);
  throw usageError(
    `A job for this output was not finished. Go on with it:\n  ${resumeCommand(id, options)}\nor begin anew with --overwrite.`,
  );
}

function incompleteOf(path: string): string {
  return `${path}.incomplete`;
}

/** With what its coordinator has written. */
async function forget(folder: string): Promise<void> {
  const { wanted } = await readLocalRecord(folder);
  const { uri } = wanted.output ?? {};
  if (uri && isAbsolute(uri)) {
    await rm(workFolderOf(uri), { recursive: true, force: true });
    await rm(incompleteOf(uri), { force: true });
  }
  await removeLocalFolder(folder);
}

async function newRecord(scoring: Scoring, plan: ScorePlan, folder: string): Promise<LocalRecord> {
  const { options, context } = scoring;
  const { cwd, modelsFolder } = context.config;
  const { output, errors } = plan;
  const repository = modelsFolderOf(cwd, options.models ?? modelsFolder);
  // Before standard input is read, and before anything starts.
  await modelNamed(repository, plan.model);
  const record: LocalRecord = {
    id: newBulkJobId(),
    modelsFolder: repository,
    workers: options.workers ?? 1,
    wanted: {
      ...plan.job,
      input: { ...plan.job.input, uri: await localInput(scoring, plan, folder) },
      output: {
        ...plan.job.output,
        uri: addressOf(output),
        ...(errors || output.kind === 'file'
          ? { errors_uri: errors ? addressOf(errors) : errorsPathOf(addressOf(output)) }
          : {}),
      },
    },
  };
  await writeLocalRecord(folder, record);
  return record;
}

function addressOf(place: OutputPlace): string {
  return place.kind === 'file' ? place.path : place.uri;
}

async function localInput({ context, signals }: Scoring, plan: ScorePlan, folder: string): Promise<string> {
  const { input, job } = plan;
  if (input.kind === 'remote') return input.uri;
  if (input.kind !== 'stdin') return input.path;
  const to = join(folder, `stdin.${job.input.format}`);
  await withProgress(context.terminal, 'reading standard input', (say) =>
    fetchInput(Readable.from(context.stdin), {
      to,
      signal: stopOf(signals),
      onProgress: (bytes) => say(megabytes(bytes)),
    }),
  );
  return to;
}

function stopOf({ first }: StopSignals): AbortSignal {
  const stop = new AbortController();
  void first.then(({ name }) => stop.abort(new Interrupted(name)));
  return stop.signal;
}

interface LocalJob {
  folder: string;
  record: LocalRecord;
  /** Nothing was done for it before. */
  isNew: boolean;
}

async function run(scoring: Scoring, { folder, record, isNew }: LocalJob): Promise<number> {
  const { options, context, signals } = scoring;
  const { terminal, config } = context;
  const bulk = new LocalBulk({
    model: record.wanted.model,
    modelsFolder: record.modelsFolder,
    folder,
    workers: options.workers ?? record.workers,
    keyspace: config.keyspace,
    env: config.env,
    cwd: config.cwd,
    say: (line) => {
      terminal.status?.('');
      terminal.note(line);
    },
  });
  void signals.second.then(() => {
    terminal.note('stopping at once');
    bulk.kill();
  });
  const resume = resumeCommand(record.id, options);
  let begun = !isNew;
  let finished = false;
  try {
    const job = await started(bulk, record, scoring);
    begun = true;
    if (job === undefined) {
      terminal.note(`Go on with:\n  ${resume}`);
      return (await signals.first).exitCode;
    }
    const followed = await followJob(job, { control: bulk.control, terminal, asked: signals.first });
    const last = followed.end === 'asked' ? await paused(bulk.control, followed.job, scoring) : followed.job;
    finished = isOver(last);
    const aside =
      !finished && last.status === 'failed' ? await setAside(last, { folder, record }) : undefined;
    const code = followed.end === 'asked' && !finished ? (await signals.first).exitCode : undefined;
    const places = aside === undefined ? placesOf(last, record) : { output: aside };
    const end = { job: withoutHint(last), places, ...(finished ? {} : { resume }) };
    return showEnd({ ...end, ...(code === undefined ? {} : { code }) }, options.json === true, terminal);
  } catch (error) {
    // What was asked for cannot be: there is nothing to go on with.
    finished = !begun && error instanceof CliError && error.exitCode === EXIT.usage;
    throw toCliError(error);
  } finally {
    await stopTelling(bulk, scoring);
    if (finished) await forget(folder);
  }
}

/** Nothing goes on with it: of a job that has failed, its hint would say what does. */
function isOver(job: BulkJob): boolean {
  return endOf(job) === 'ended' && (job.status !== 'failed' || job.hint === null);
}

/** @returns where what is done is, of a job that has failed. Going on means that the errors so far are borne. */
async function setAside(
  job: BulkJob,
  { folder, record }: Pick<LocalJob, 'folder' | 'record'>,
): Promise<string | undefined> {
  const { wanted } = record;
  const { max_errors: limit, ...rest } = wanted;
  const more = typeof limit === 'number' ? { max_errors: limit + job.progress.rows_failed } : {};
  if (job.reason?.code === 'too_many_errors')
    await writeLocalRecord(folder, { ...record, wanted: { ...rest, ...more } });
  const { uri } = job.output;
  return uri !== null && uri !== wanted.output?.uri ? uri : undefined;
}

/** undefined: the person asked for the end before it ran. */
async function started(
  bulk: LocalBulk,
  { id, wanted }: LocalRecord,
  { context, signals }: Scoring,
): Promise<BulkJob | undefined> {
  const interrupted = signals.first.then((reason): never => {
    throw new Interrupted(reason.name);
  });
  interrupted.catch(() => {});
  const work = async (say: (text: string) => void) => {
    await Promise.race([bulk.start(say), interrupted]);
    say('the job');
    return Promise.race([bulk.control.create(wanted, id), interrupted]);
  };
  try {
    return await withProgress(context.terminal, 'starting', work);
  } catch (error) {
    if (error instanceof Interrupted) return undefined;
    throw error;
  }
}

/** What is under way is finished, so that nothing need be run again; a second signal does not wait for it. */
async function paused(control: BulkControl, job: BulkJob, { context, signals }: Scoring): Promise<BulkJob> {
  const at = signals.second.then(() => undefined);
  const { terminal } = context;
  terminal.note('Pausing: what is under way is finished first. Once more stops at once.');
  try {
    const asked = await Promise.race([control.act(job.id, 'pause'), at]);
    const end = asked && (await followJob(asked, { control, terminal, asked: signals.second }));
    return end?.job ?? job;
  } catch (error) {
    // It may have ended between the two.
    const now = await control.get(job.id).catch(() => undefined);
    if (now && endOf(now)) return now;
    throw error;
  }
}

function placesOf(job: BulkJob, { wanted }: LocalRecord) {
  const given = job.status === 'completed' || job.status === 'cancelled';
  return given ? { output: wanted.output?.uri, errors: job.output.errors_uri ?? undefined } : {};
}

/** It names the commands of a server. */
function withoutHint(job: BulkJob): BulkJob {
  return { ...job, hint: null };
}

async function stopTelling(bulk: LocalBulk, { context }: Scoring): Promise<void> {
  try {
    await bulk.stop();
  } catch (error) {
    context.terminal.note(`not everything stopped cleanly: ${reasonOf(error)}`);
  }
}

function toCliError(error: unknown): Error {
  return error instanceof CliError ? error : new CliError(reasonOf(error), undefined, { cause: error });
}

function resumeCommand(id: string, { out, workers }: ScoreOptions): string {
  return shellCommand([
    ...['remuda', 'score', '--local', '--resume', id],
    ...(out === undefined ? [] : ['--out', out]),
    ...(workers === undefined ? [] : ['--workers', String(workers)]),
  ]);
}
