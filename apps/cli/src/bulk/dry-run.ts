/**
 * `remuda score --dry-run`: what the job would be, found out without writing anything: columns of the input, which of
 * them make which input of the model, columns of the output, how it would be cut, and how long it would take, from a
 * sample of its first rows that is really scored.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { OpenedInput } from '@remuda/core/bulk/input/bulk-input';
import { fetchInput } from '@remuda/core/bulk/input/fetch-input';
import { openInput } from '@remuda/core/bulk/input/open-input';
import { isRemote } from '@remuda/core/bulk/input/remote-uri';
import { type DescribedMapping, describeMapping } from '@remuda/core/bulk/mapping/describe-mapping';
import type { BulkJob, ModelSignature } from '@remuda/schemas';
import { CliError, Interrupted, reasonOf, usageError } from '../cli-error.js';
import { printJson } from '../commands/context.js';
import { EXIT } from '../exit-codes.js';
import { megabytes } from '../terminal/figures.js';
import { withProgress } from '../terminal/progress.js';
import { type ChunkPlan, chunkPlan } from './chunk-plan.js';
import { dryRunLines } from './dry-run-text.js';
import { type OutputColumnPlan, outputColumns } from './output-columns.js';
import { type Sample, takeSample } from './sample.js';
import { openSampleRunner, type SampleRunner } from './sample-runner.js';
import type { Scoring } from './score-api.js';
import { type ScorePlan, scorePlan } from './score-plan.js';

export interface DryRun {
  model: string;
  version: string;
  input: {
    format: string;
    compression: string;
    rows: number | null;
    bytes: number | null;
    columns: { name: string; type: string | null }[];
  };
  mapping: DescribedMapping;
  output: OutputColumnPlan[];
  sample: { rows: number; failed: number; device_seconds: number } | null;
  chunks: ChunkPlan | null;
  problems: string[];
}

/** @returns 2 where the job would not run */
export async function dryRun(scoring: Scoring): Promise<number> {
  const { options, context } = scoring;
  const plan = scorePlan(options, context.config.cwd);
  const folder = await mkdtemp(join(tmpdir(), 'remuda-dry-run-'));
  const runner = await openSampleRunner(scoring, plan, folder);
  try {
    const path = await inputHere(scoring, plan, folder);
    const found = await looked(scoring, plan, { runner, folder, path });
    if (options.json) printJson(context.terminal, found);
    else for (const line of dryRunLines(found, context.terminal)) context.terminal.out(line);
    return found.problems.length > 0 ? EXIT.usage : EXIT.ok;
  } finally {
    await runner.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function looked(
  { context, signals }: Scoring,
  plan: ScorePlan,
  { runner, folder, path }: { runner: SampleRunner; folder: string; path: string },
): Promise<DryRun> {
  const input = await opened(plan, path);
  try {
    const served = await runner.served();
    const found = described(plan, input, served.signature);
    if (found.problems.length > 0) return found;
    const sample = await takeSample({
      plan,
      input,
      mapping: found.mapping,
      folder,
      imageColumn: runner.imageColumn(served.signature),
    });
    if (sample === null) return found;
    const scored = withProgress(context.terminal, `scoring ${sample.rows} rows`, () => runner.score(sample));
    const job = await Promise.race([scored, signals.first]);
    if (!('id' in job)) throw new CliError('Interrupted.', job.exitCode);
    return { ...found, ...measured(plan, input, { sample, job, served }) };
  } finally {
    await input.close();
  }
}

/** Where it lies; brought here first where it lies elsewhere. */
async function inputHere(
  { context, signals }: Scoring,
  { input, job }: ScorePlan,
  folder: string,
): Promise<string> {
  if (input.kind === 'file' || input.kind === 'images') return input.path;
  if (input.kind === 'remote' && !isRemote(input.uri))
    throw usageError(
      '--dry-run looks at the file itself, which lies on the server: give a path of this machine.',
    );
  const stop = new AbortController();
  void signals.first.then(({ name }) => stop.abort(new Interrupted(name)));
  const from = input.kind === 'remote' ? input.uri : Readable.from(context.stdin);
  const { path } = await withProgress(context.terminal, 'fetching the input', (say) =>
    fetchInput(from, {
      to: join(folder, `input.${job.input.format}`),
      signal: stop.signal,
      // Whoever runs this may reach whatever this machine does.
      allowed: null,
      onProgress: (bytes) => say(megabytes(bytes)),
    }),
  );
  return path;
}

async function opened({ job }: ScorePlan, path: string): Promise<OpenedInput> {
  const { format, compression = 'none', delimiter, types } = job.input;
  if (format === undefined) throw usageError('The format of the input is not known: give --format.');
  try {
    return await openInput({
      path,
      compression,
      read: { format, ...(delimiter ? { delimiter } : {}), ...(types ? { types } : {}) },
    });
  } catch (error) {
    throw new CliError(reasonOf(error), EXIT.usage, { cause: error });
  }
}

function described({ job }: ScorePlan, input: OpenedInput, signature: ModelSignature): DryRun {
  const mapping = describeMapping({
    columns: input.columns,
    signature,
    ...(job.map ? { map: job.map } : {}),
    keep: job.output?.keep ?? [],
    ...(job.id_column === undefined ? {} : { idColumn: job.id_column }),
    ...(input.read.lines ? { lines: input.read.lines } : {}),
  });
  const problems = [
    ...mapping.problems,
    ...mapping.inputs.flatMap(({ input: name, problems: own }) => own.map((text) => `map.${name}: ${text}`)),
  ];
  const output = outputColumns(job, { signature, mapping, columns: input.columns });
  if (output instanceof Error) problems.push(output.message);
  return {
    model: signature.model,
    version: signature.version,
    input: {
      format: input.read.format,
      compression: input.compression,
      rows: input.totalRows,
      // Of images it is that of the list of their names.
      bytes: input.read.format === 'images' ? null : input.totalBytes,
      columns: [...input.columns],
    },
    mapping,
    output: output instanceof Error ? [] : output,
    sample: null,
    chunks: null,
    problems,
  };
}

interface Measured {
  sample: Sample;
  job: BulkJob;
  served: Awaited<ReturnType<SampleRunner['served']>>;
}

function measured({ job: wanted }: ScorePlan, input: OpenedInput, { sample, job, served }: Measured) {
  const { rows_done, rows_failed, device_seconds, elapsed_s } = job.progress;
  if (rows_done === 0)
    throw new CliError(`The sample was not scored: ${job.reason?.message ?? `it is ${job.status}`}.`);
  const scored = { rows: rows_done, failed: rows_failed, device_seconds };
  const known = sample.whole ? sample.rows : input.totalRows;
  const rows = known ?? estimatedRows(input.totalBytes, sample);
  const chunks = chunkPlan({
    rows,
    exact: known !== null,
    // Runs that are too short to be measured: no faster than the job was.
    secondsPerRow: (device_seconds || elapsed_s || 1e-6) / Math.max(1, rows_done - rows_failed),
    batchRows: served.signature.max_batch_size,
    instances: served.instances,
    devices: served.devices,
    mostRows: wanted.chunk_rows ?? null,
  });
  return { sample: scored, chunks };
}

/** Of a text whose end nobody has seen. */
function estimatedRows(bytes: number | null, sample: Sample): number | null {
  return bytes === null || sample.bytes === 0 ? null : Math.round((bytes / sample.bytes) * sample.rows);
}
