/** `remuda models profile`: measures a model over batch sizes × instances × threads, and recommends its settings. */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { probeMachine } from '@remuda/core/devices/probe';
import { type ModelProfile, profileModel } from '@remuda/core/profile/profile-model';
import type { SweepPoint } from '@remuda/core/profile/recommendation';
import { sweepPlot } from '@remuda/core/profile/sweep-plot';
import { editConfig } from '@remuda/core/repository/edit-config';
import { CONFIG_FILE } from '@remuda/core/repository/manifests';
import { CliError, reasonOf } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { TrialFlags } from '../model-tools.js';
import { withProgress } from '../terminal/progress.js';
import { type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { projectOf } from '../workspace.js';
import { type CommandContext, printJson } from './context.js';
import { modelNamed, repositoryOf, sourceOf } from './model-of-repository.js';

export interface ProfileFlags extends TrialFlags {
  version?: string;
  latencyMs?: number;
  maxBatch: number;
  seconds: number;
  repeats: number;
  exhaustive?: boolean;
  write?: boolean;
  plot?: string;
  models?: string;
  json?: boolean;
}

export async function profile(name: string, flags: ProfileFlags, context: CommandContext): Promise<number> {
  const { terminal, config } = context;
  const model = await modelNamed(repositoryOf(context, flags.models), name);
  const source = sourceOf(model, flags.version);
  const { usableCores } = await probeMachine();
  const found = await withProgress(terminal, `measuring ${source.modelId} on ${usableCores} cores`, (say) =>
    profileModel(source, {
      cores: usableCores,
      trial: { files: flags.inputs, dims: flags.dims },
      maxBatch: flags.maxBatch,
      latencyMs: flags.latencyMs,
      measureS: flags.seconds,
      warmUpS: Math.min(0.2, flags.seconds),
      repeats: flags.repeats,
      exhaustive: flags.exhaustive,
      onMeasured: (point, count) => say(`${count}. ${settingText(point)}: ${rate(point.rowsPerS)} rows/s`),
      onFailed: (setting, error) => terminal.note(`${settingText(setting)} cannot be run: ${error.message}`),
    }),
  ).catch((error: unknown) => {
    throw new CliError(`${source.modelId} cannot be measured: ${reasonOf(error)}`, undefined, {
      cause: error,
    });
  });
  const plot = flags.plot
    ? resolve(config.cwd, flags.plot)
    : join(projectOf(config.cwd).stateFolder, 'profiles', `${source.modelId}.svg`);
  await writePlot(plot, source.modelId, found);
  const settings = settingsOf(found.recommendation.point);
  const file = join(model.folder, CONFIG_FILE);
  if (flags.write) await writeSettings(file, settings);
  if (flags.json) printJson(terminal, { model: source.modelId, ...jsonOf(found), settings, plot });
  else {
    for (const line of profileLines(found, terminal)) terminal.out(line);
    terminal.out(`plot: ${plot}`);
    if (flags.write) terminal.out(`written into ${file}; comments beside the values are as they were`);
  }
  return found.recommendation.meetsObjective ? EXIT.ok : EXIT.failed;
}

const COLUMNS: readonly Column[] = [
  { title: 'instances', align: 'right' },
  { title: 'threads', align: 'right' },
  { title: 'batch', align: 'right' },
  { title: 'rows/s', align: 'right' },
  { title: 'p50 ms', align: 'right' },
  { title: 'p95 ms', align: 'right' },
  { title: 'memory MiB', align: 'right' },
  { title: '' },
];

export function profileLines(found: ModelProfile, { colours, width }: Terminal): string[] {
  const { points, recommendation, inputs, items, measurements, provider } = found;
  const rows = points.map((point) => [
    String(point.instances),
    String(point.threads),
    String(point.batch),
    rate(point.rowsPerS),
    point.p50Ms.toFixed(2),
    point.p95Ms.toFixed(2),
    (point.rssBytes / 2 ** 20).toFixed(0),
    isSame(point, recommendation.point) ? { text: '← recommended', paint: colours.green } : '',
  ]);
  const source = { files: 'given', golden: 'golden', synthetic: 'made-up' }[inputs];
  return [
    ...tableLines(COLUMNS, rows, { width, paintTitle: colours.dim }),
    '',
    `${measurements} measurements on ${provider} with ${items} ${source} inputs; p50 and p95 are of one run`,
    ...recommendationLines(found),
  ];
}

function recommendationLines({ recommendation }: ModelProfile): string[] {
  const { point, meetsObjective } = recommendation;
  const lines = Object.entries(settingsOf(point)).map(([key, value]) => `  ${key}: ${value}`);
  if (meetsObjective) return ['recommended:', ...lines];
  return ['no setting keeps the p95 of a run below the latency asked for; the quickest is:', ...lines];
}

function isSame(a: SweepPoint, b: SweepPoint): boolean {
  return a.batch === b.batch && a.instances === b.instances && a.threads === b.threads;
}

/** The keys of model.yaml. */
function settingsOf({ batch, instances, threads }: SweepPoint) {
  return { max_batch_size: batch, instances, intra_op_threads: threads };
}

function jsonOf({ points, recommendation, measurements, inputs, provider }: ModelProfile) {
  const plain = (point: SweepPoint) => ({
    ...settingsOf(point),
    rows_per_s: point.rowsPerS,
    p50_ms: point.p50Ms,
    p95_ms: point.p95Ms,
    rss_bytes: point.rssBytes,
  });
  return {
    provider,
    inputs,
    measurements,
    points: points.map(plain),
    recommended: plain(recommendation.point),
    meets_objective: recommendation.meetsObjective,
  };
}

async function writePlot(
  file: string,
  modelId: string,
  { points, recommendation }: ModelProfile,
): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, sweepPlot(points, { title: modelId, recommended: recommendation.point }));
}

/** A reader of the file sees the old text or the new. */
async function writeSettings(file: string, settings: Record<string, number>): Promise<void> {
  const text = editConfig(await readFile(file, 'utf8'), settings);
  const beside = `${file}.${process.pid}.tmp`;
  await writeFile(beside, text);
  await rename(beside, file);
}

function settingText({
  batch,
  instances,
  threads,
}: {
  batch: number;
  instances: number;
  threads: number;
}): string {
  return `${instances} × ${threads}, batch ${batch}`;
}

function rate(rowsPerS: number): string {
  return rowsPerS >= 100 ? rowsPerS.toFixed(0) : rowsPerS.toFixed(1);
}
