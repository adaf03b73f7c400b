/** `remuda trace`: why a request went where it went, the times of its life, and where it ran. */
import type { InferenceResult, RequestRecord, RouteCandidate } from '@remuda/schemas';
import { isResult } from '../api/api-client.js';
import { itemErrorText } from '../api/problem-text.js';
import { EXIT } from '../exit-codes.js';
import { milliseconds, plural } from '../terminal/figures.js';
import { type Cell, type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';
import { outcomesOf } from './outcomes.js';

export async function trace(
  id: string,
  options: ApiOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const record = await api.record(id);
  const answer = record.finished_at === null ? null : await api.result(id);
  const result = answer && isResult(answer) ? answer : null;
  if (options.json) printJson(terminal, { record, items: result ? ranWhere(result) : [] });
  else for (const line of traceLines(record, result, terminal)) terminal.out(line);
  return EXIT.ok;
}

export function traceLines(
  record: RequestRecord,
  result: InferenceResult | null,
  terminal: Terminal,
): string[] {
  const { bold, dim, yellow } = terminal.colours;
  const { request_id, status, model, version, items, rows, route, notices, error } = record;
  const what = [`${model} version ${version}`, plural(items.total, 'item'), plural(rows, 'row')];
  return [
    `${bold(request_id)}  ${status}  ${dim(what.join(', '))}`,
    ...(error ? [`  ${itemErrorText(error)}`] : []),
    ...notices.map((notice) => `  ${yellow(notice)}`),
    '',
    bold('decision'),
    ...(route.version_reason ? [`  ${route.version_reason}`] : []),
    ...(route.fallback_for ? [`  it answers for ${route.fallback_for}`] : []),
    ...route.reasons.map((reason) => `  ${reason}`),
    ...candidateLines(route.candidates ?? [], route.facts_age_ms, terminal),
    '',
    bold('life'),
    ...lifeLines(record),
    ...(result ? ['', bold('ran'), ...ranLines(result, terminal)] : []),
  ];
}

const CANDIDATE_COLUMNS: readonly Column[] = [
  { title: 'class' },
  { title: 'workers', align: 'right' },
  { title: 'instances', align: 'right' },
  { title: 'rows ahead', align: 'right' },
  { title: 'ms/row', align: 'right' },
  { title: 'expected ms', align: 'right' },
  { title: 'verdict', shrinkTo: 24 },
];

function candidateLines(
  candidates: readonly RouteCandidate[],
  ageMs: number | undefined,
  { colours, width }: Terminal,
): string[] {
  if (candidates.length === 0) return [];
  const rows = candidates.map((candidate): (string | Cell)[] => [
    candidate.device_class,
    String(candidate.workers),
    String(candidate.instances),
    String(candidate.rows_ahead),
    millisecondsOf(candidate.seconds_per_row),
    millisecondsOf(candidate.expected_s),
    candidate.verdict === 'chosen' ? { text: 'chosen', paint: colours.green } : candidate.verdict,
  ]);
  return [
    ...tableLines(CANDIDATE_COLUMNS, rows, { width, paintTitle: colours.dim }),
    ...(ageMs === undefined ? [] : [colours.dim(`what the fleet and its queues were ${ageMs} ms before`)]),
  ];
}

/** Measured, or "?": not measured yet. */
function millisecondsOf(seconds: number | null): string {
  return seconds === null ? '?' : milliseconds(seconds * 1_000);
}

function lifeLines(record: RequestRecord): string[] {
  const { created_at, started_at, finished_at, deadline_at, finish_deadline_at } = record;
  const { attempts, queue, status } = record;
  const accepted = Date.parse(created_at);
  const line = (what: string, at: string | null | undefined) =>
    at ? [`  ${what.padEnd(9)} ${at}  +${milliseconds(Date.parse(at) - accepted)} ms`] : [];
  return [
    ...line('accepted', created_at),
    ...line('started', started_at),
    ...line(status, finished_at),
    ...(finished_at || started_at ? [] : line('start by', deadline_at)),
    ...(finished_at ? [] : line('finish by', finish_deadline_at)),
    ...(queue
      ? [
          `  ${plural(queue.position, 'request')} and ${plural(queue.rows_ahead, 'row')} before it`,
          ...line('expected', queue.eta_at),
        ]
      : []),
    `  taken up ${plural(attempts, 'time')}`,
  ];
}

const RAN_COLUMNS: readonly Column[] = [
  { title: 'item', shrinkTo: 12 },
  { title: 'status' },
  { title: 'worker', shrinkTo: 16 },
  { title: 'device' },
  { title: 'provider' },
  { title: 'batch rows', align: 'right' },
  { title: 'queue ms', align: 'right' },
  { title: 'run ms', align: 'right' },
  { title: 'total ms', align: 'right' },
];

function ranLines(result: InferenceResult, { colours, width }: Terminal): string[] {
  const rows = outcomesOf(result).map(({ id, index, status, metrics }) => [
    id ?? String(index),
    status,
    ...(metrics
      ? [
          metrics.worker_id,
          metrics.device,
          metrics.provider,
          String(metrics.batch_rows),
          ...[metrics.queue_ms, metrics.run_ms, metrics.total_ms].map(milliseconds),
        ]
      : ['', '', '', '', '', '', '']),
  ]);
  return tableLines(RAN_COLUMNS, rows, { width, paintTitle: colours.dim });
}

function ranWhere(result: InferenceResult) {
  return outcomesOf(result).map(({ id, index, status, metrics }) => ({ id, index, status, metrics }));
}
