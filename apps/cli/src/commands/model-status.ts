/** `remuda models status`: what is wanted of the models, and how far the fleet is; `history`: who has done what. */
import type { AdminModel, AdminModelSummary, AdminVersion, ModelEvent } from '@remuda/schemas';
import type { ApiClient } from '../api/api-client.js';
import { EXIT } from '../exit-codes.js';
import { megabytes, plural } from '../terminal/figures.js';
import { type Cell, type Column, tableLines } from '../terminal/table.js';
import type { Colours, Terminal } from '../terminal/terminal.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';
import { eventText } from './event-text.js';
import { distinctProblems } from './model-problems.js';
import { EVENTS_LOOKED_AT, rollbackLines } from './rollback-lines.js';
import { shadowReportLines, splitReportLines } from './traffic-report.js';

export interface StatusOptions extends ApiOptions {
  /** Models that were taken out too. */
  all?: boolean;
}

export async function modelStatus(
  name: string | undefined,
  options: StatusOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const answer = name === undefined ? await api.adminModels() : await api.adminModel(name);
  if (options.json) printJson(terminal, answer);
  else {
    const lines = Array.isArray(answer)
      ? summaryLines(answer, terminal, options.all)
      : statusLines(answer, terminal, await rollbacksOf(answer, api));
    for (const line of lines) terminal.out(line);
  }
  return EXIT.ok;
}

/** New weights alone do not say that a canary has failed. */
async function rollbacksOf({ model, deployment }: AdminModel, api: ApiClient): Promise<string[]> {
  return deployment.split ? rollbackLines(await api.history(model, EVENTS_LOOKED_AT)) : [];
}

export interface HistoryOptions extends ApiOptions {
  limit: number;
}

export async function modelHistory(
  name: string,
  options: HistoryOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const events = await apiOf(options, config).history(name, options.limit);
  if (options.json) printJson(terminal, events);
  else for (const line of historyLines(events, terminal)) terminal.out(line);
  return EXIT.ok;
}

const SUMMARY: readonly Column[] = [
  { title: 'model', shrinkTo: 16 },
  { title: 'load mode' },
  { title: 'versions', shrinkTo: 8 },
  { title: 'serves', align: 'right' },
  { title: 'aliases', shrinkTo: 12 },
  { title: 'split', shrinkTo: 10 },
  { title: 'copies', shrinkTo: 10 },
  { title: 'fleet' },
];

/** @param all with those that were taken out */
export function summaryLines(
  models: readonly AdminModelSummary[],
  { colours, width }: Terminal,
  all = false,
): string[] {
  if (models.length === 0) return ['No model is registered, and the repository is empty.'];
  const shown = models.filter(({ registered }) => registered || all);
  const left = models.length - shown.length;
  const hint = left === 0 ? [] : [colours.dim(`taken out: ${plural(left, 'model')}, shown with --all`)];
  if (shown.length === 0) return hint;
  const rows = shown.map((model): (string | Cell)[] => [
    model.model,
    model.registered ? model.load_mode : { text: 'taken out', paint: colours.yellow },
    model.versions.join(', ') || 'none',
    model.default_version ?? 'none',
    pairs(model.aliases, '→'),
    model.split ? pairs(model.split, '=') : '',
    Object.entries(model.states)
      .map(([state, count]) => `${count} ${state}`)
      .join(', '),
    fleetCell(model, colours),
  ]);
  return [
    ...tableLines(SUMMARY, rows, { width, paintTitle: colours.dim }),
    ...shown.flatMap(({ model, problems }) =>
      distinctProblems(problems).map((problem) => colours.red(`${model}: ${problem}`)),
    ),
    ...hint,
  ];
}

function fleetCell({ converged, states }: AdminModelSummary, { green, red, yellow }: Colours): Cell {
  if (!converged) return { text: 'under way', paint: yellow };
  return states.failed ? { text: 'failed', paint: red } : { text: 'as wanted', paint: green };
}

const VERSIONS: readonly Column[] = [
  { title: 'version', align: 'right' },
  { title: 'digest' },
  { title: 'aliases', shrinkTo: 8 },
  { title: 'serves', shrinkTo: 8 },
  { title: 'wanted' },
  { title: 'worker', shrinkTo: 12 },
  { title: 'device' },
  { title: 'state' },
  { title: 'memory', align: 'right' },
];

/** @param rollbacks what was taken back, as rollback-lines.ts says it */
export function statusLines(
  model: AdminModel,
  terminal: Terminal,
  rollbacks: readonly string[] = [],
): string[] {
  const { colours, width } = terminal;
  const { deployment, convergence, default_version } = model;
  const rows = model.versions.flatMap((version) => versionRows(version, colours));
  return [
    `${colours.bold(model.model)}  revision ${deployment.revision} by ${deployment.updated_by}, load mode ${model.load_mode}, serves ${default_version ?? 'none'}`,
    ...trafficLines(model),
    ...rollbacks.map((text) => colours.yellow(text)),
    ...(rows.length > 0
      ? tableLines(VERSIONS, rows, { width, paintTitle: colours.dim })
      : ['No version is known yet.']),
    ...convergence.waiting_for.map((text) => colours.yellow(`under way: ${text}`)),
    ...model.versions.flatMap((version) => unloadedLines(version, model).map((text) => colours.yellow(text))),
    ...convergence.failed.map((text) => colours.red(`failed: ${text}`)),
    ...distinctProblems(model.problems, convergence.failed).map((problem) => colours.red(problem)),
  ];
}

/** What leads to a version that was unloaded is easily overlooked: its requests go elsewhere. */
function unloadedLines(
  { version, served_as, wanted, wanted_reason }: AdminVersion,
  { default_version, fallback }: AdminModel,
): string[] {
  if (wanted !== 'off' || served_as.length === 0) return [];
  const refused = fallback === null ? 'requests are refused' : `answered by ${fallback}`;
  const instead = default_version === null ? refused : `requests go to ${default_version}`;
  const lead = served_as.length > 1 ? 'lead' : 'leads';
  return [
    `${served_as.join(' and ')} ${lead} to ${version}, which is not loaded (${wanted_reason}): ${instead}`,
  ];
}

/** One row for each copy; a version that nobody has is one row too. */
function versionRows(version: AdminVersion, colours: Colours): (string | Cell)[][] {
  const { version: number, digest, aliases, served_as, wanted, copies } = version;
  const head = [number, digest?.slice(0, 12) ?? '', aliases.join(', '), served_as.join(', '), wanted];
  if (copies.length === 0) return [[...head, '', '', 'nowhere', '']];
  return copies.map(({ worker_id, device, state, memory_bytes }, at): (string | Cell)[] => [
    ...(at === 0 ? head : ['', '', '', '', '']),
    worker_id,
    device,
    { text: state, paint: paintOf(state, colours) },
    memory_bytes === null ? '' : megabytes(memory_bytes),
  ]);
}

function trafficLines(model: AdminModel): string[] {
  const { split, shadow, instances, source, registered } = model.deployment;
  const rollback = split?.rollback
    ? `, taken back after ${plural(split.rollback.min_requests, 'request')} if worse`
    : '';
  return [
    ...(registered ? [] : ['taken out: requests for it are refused']),
    ...(source
      ? [`source ${String(source.url ?? source.path ?? `s3://${source.bucket}/${source.prefix}`)}`]
      : []),
    ...(split ? [`split ${pairs(split.weights, '=')} against ${split.stable}${rollback}`] : []),
    ...splitReportLines(model),
    ...(shadow ? [`shadow ${shadow.version}, ${Math.round(shadow.sample * 100)} % of requests`] : []),
    ...shadowReportLines(model),
    ...(instances === null ? [] : [`${plural(instances, 'instance')} on each device`]),
  ];
}

const EVENTS: readonly Column[] = [
  { title: 'when' },
  { title: 'who', shrinkTo: 8 },
  { title: 'what' },
  { title: 'detail', shrinkTo: 20, wrap: true },
  { title: 'revision', align: 'right' },
];

export function historyLines(events: readonly ModelEvent[], { colours, width }: Terminal): string[] {
  if (events.length === 0) return ['Nothing was done to it yet.'];
  const rows = events.map(({ at, who, what, detail, revision }) => [
    at.replace(/\.\d+Z$/, 'Z'),
    who,
    what,
    eventText(detail),
    revision === null ? '' : String(revision),
  ]);
  return tableLines(EVENTS, rows, { width, paintTitle: colours.dim });
}

function paintOf(state: string, { green, red, yellow }: Colours): (text: string) => string {
  if (state === 'ready') return green;
  return state === 'failed' ? red : yellow;
}

function pairs(of: Readonly<Record<string, string | number>>, sign: string): string {
  return Object.entries(of)
    .map(([name, value]) => `${name}${sign}${value}`)
    .join(', ');
}
