/** `remuda result`: the outcome of a request, item by item; with --save its outputs as files. */
import type { InferenceResult } from '@remuda/schemas';
import { isResult } from '../api/api-client.js';
import { itemErrorText } from '../api/problem-text.js';
import { EXIT } from '../exit-codes.js';
import { milliseconds } from '../terminal/figures.js';
import { type Cell, type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';
import { extraLines } from './extra-text.js';
import { type Outcome, outcomesOf } from './outcomes.js';
import { recordLines } from './record-text.js';
import { saveOutputs } from './save-outputs.js';
import { outputText } from './tensor-text.js';

export interface ResultOptions extends ApiOptions {
  wait?: number;
  save?: string;
}

export async function result(
  id: string,
  options: ResultOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  if (options.wait) await api.record(id, options.wait);
  const answer = await api.result(id);
  if (isResult(answer)) {
    const code = showResult(answer, options, terminal);
    if (options.save) await saveOutputs(answer, options.save, { cwd: config.cwd, terminal });
    return code;
  }
  if (options.json) printJson(terminal, answer);
  else for (const line of recordLines(answer, terminal)) terminal.out(line);
  return EXIT.unfinished;
}

/** Prints a result; the exit code says whether all of it succeeded. */
export function showResult(result: InferenceResult, { json }: ApiOptions, terminal: Terminal): number {
  if (json) printJson(terminal, result);
  else for (const line of resultLines(result, terminal)) terminal.out(line);
  return result.status === 'succeeded' ? EXIT.ok : EXIT.failed;
}

const COLUMNS: readonly Column[] = [
  { title: 'item', shrinkTo: 16 },
  { title: 'status' },
  { title: 'answer', shrinkTo: 24 },
  { title: 'batch', align: 'right' },
  { title: 'queue ms', align: 'right' },
  { title: 'run ms', align: 'right' },
  { title: 'total ms', align: 'right' },
];

function resultLines(result: InferenceResult, { colours, width }: Terminal): string[] {
  const outcomes = outcomesOf(result);
  const { model, version, status, request_id, error, route } = result;
  const instead = route?.fallback_for ? `, in place of ${route.fallback_for}` : '';
  const paint = status === 'succeeded' ? colours.green : colours.red;
  const rows = outcomes.map((outcome) => rowOf(outcome, colours.red));
  return [
    `${colours.bold(request_id)}  ${paint(status)}  ${colours.dim(`${model} version ${version}${instead}`)}`,
    ...(error && !outcomes.some((outcome) => outcome.error) ? [`  ${itemErrorText(error)}`] : []),
    ...tableLines(COLUMNS, rows, { width, paintTitle: colours.dim }),
    ...extraLines(outcomes, result.items !== null),
    ...outcomes.flatMap(({ id, index, error: fault }) =>
      fault ? [colours.red(`${id ?? index}: ${itemErrorText(fault)}`)] : [],
    ),
  ];
}

function rowOf(
  { id, index, status, outputs, error, metrics }: Outcome,
  red: (text: string) => string,
): (string | Cell)[] {
  const figures = metrics
    ? [String(metrics.batch_rows), ...[metrics.queue_ms, metrics.run_ms, metrics.total_ms].map(milliseconds)]
    : ['', '', '', ''];
  const answer: string | Cell = error
    ? { text: error.code, paint: red }
    : Object.entries(outputs ?? {})
        .map(([name, tensor]) => `${name} ${outputText(tensor)}`)
        .join(', ');
  return [id ?? String(index), status, answer, ...figures];
}
