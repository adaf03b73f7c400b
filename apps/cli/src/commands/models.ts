/** `remuda models`: what the fleet serves; with a name what that model takes and gives. */
import type { ModelDetail, ModelSummary, SignatureTensor } from '@remuda/schemas';
import { EXIT } from '../exit-codes.js';
import { plural } from '../terminal/figures.js';
import { type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';
import { distinctProblems } from './model-problems.js';

export async function models(
  name: string | undefined,
  options: ApiOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const answer = name ? await api.model(name) : await api.models();
  if (options.json) printJson(terminal, answer);
  else {
    const lines = Array.isArray(answer) ? listLines(answer, terminal) : detailLines(answer, terminal);
    for (const line of lines) terminal.out(line);
  }
  return EXIT.ok;
}

const LIST: readonly Column[] = [
  { title: 'model', shrinkTo: 16 },
  { title: 'version', align: 'right' },
  { title: 'workers', align: 'right' },
  { title: 'waiting', align: 'right' },
  { title: 'active', align: 'right' },
  { title: 'description', shrinkTo: 20 },
];

export function listLines(summaries: readonly ModelSummary[], { colours, width }: Terminal): string[] {
  if (summaries.length === 0) return ['The model repository is empty.'];
  const rows = summaries.map(({ name, default_version, workers, queues, description }) => [
    name,
    default_version ?? 'none',
    workers > 0 ? String(workers) : { text: '0', paint: colours.yellow },
    String(queues.reduce((sum, queue) => sum + queue.waiting, 0)),
    String(queues.reduce((sum, queue) => sum + queue.active, 0)),
    { text: description, paint: colours.dim },
  ]);
  return [
    ...tableLines(LIST, rows, { width, paintTitle: colours.dim }),
    ...summaries.flatMap(problemLines(colours.red)),
  ];
}

const TENSORS: readonly Column[] = [
  { title: '' },
  { title: 'name', shrinkTo: 12 },
  { title: 'datatype' },
  { title: 'shape', shrinkTo: 12 },
  { title: 'batch axis', align: 'right' },
];

export function detailLines(detail: ModelDetail, { colours, width }: Terminal): string[] {
  const { name, description, versions, default_version, workers, signature, config, labels } = detail;
  const tensorRows = [
    ...(signature?.inputs.map((tensor) => tensorRow('takes', tensor)) ?? []),
    ...(signature?.outputs.map((tensor) => tensorRow('gives', tensor)) ?? []),
  ];
  const tags = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return [
    `${colours.bold(name)}  ${description}`,
    `versions ${versions.join(', ') || 'none'} (default ${default_version ?? 'none'}), on ${plural(workers, 'live worker')}`,
    ...(config ? [configLine(config)] : []),
    ...(tags.length > 0 ? [colours.dim(tags.join('  '))] : []),
    '',
    ...(signature
      ? tableLines(TENSORS, tensorRows, { width, paintTitle: colours.dim })
      : ['What it takes and gives is not known yet: no worker has loaded it.']),
    ...problemLines(colours.red)(detail),
  ];
}

function configLine(config: NonNullable<ModelDetail['config']>): string {
  const {
    harness,
    max_batch_size,
    max_queue_delay_ms,
    instances,
    affinity = [config.device ?? 'cpu'],
  } = config;
  const places = affinity.map((rule) => (typeof rule === 'string' ? rule : rule.device));
  const batches = `batches of up to ${max_batch_size} rows within ${max_queue_delay_ms} ms`;
  return `harness ${harness}, ${batches}, ${plural(instances, 'instance')}, on ${places.join(' or ')}`;
}

function tensorRow(role: string, { name, datatype, shape, batch_axis, kind }: SignatureTensor): string[] {
  const type = kind === 'image' ? 'image file' : datatype;
  return [role, name, type, `[${shape.join(', ')}]`, batch_axis === null ? 'none' : String(batch_axis)];
}

function problemLines(paint: (text: string) => string) {
  return ({ name, problems }: ModelSummary): string[] =>
    distinctProblems(problems).map((problem) => paint(`${name}: ${problem}`));
}
