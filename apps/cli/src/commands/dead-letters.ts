/** `remuda dead-letters …`: what was given up; look at it, run it again, throw it away. */
import {
  type DeadLetter,
  DeadLetterPage,
  DeadLetter as DeadLetterSchema,
  DiscardAnswer,
  RedriveAnswer,
} from '@remuda/schemas';
import { itemErrorText } from '../api/problem-text.js';
import { usageError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { plural } from '../terminal/figures.js';
import { type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';

const PATH = '/v1/dead-letters';

export interface LetterChoice extends ApiOptions {
  model?: string;
  class?: string;
  limit?: number;
}

export async function listLetters(
  options: LetterChoice,
  { terminal, config }: CommandContext,
): Promise<number> {
  const query = new URLSearchParams();
  for (const name of ['model', 'class', 'limit'] as const) {
    if (options[name] !== undefined) query.set(name, String(options[name]));
  }
  const page = await apiOf(options, config).ask(DeadLetterPage, 'GET', `${PATH}?${query}`);
  if (options.json) printJson(terminal, page);
  else for (const line of letterLines(page, terminal)) terminal.out(line);
  return EXIT.ok;
}

const COLUMNS: readonly Column[] = [
  { title: 'request' },
  { title: 'model', shrinkTo: 10, wrap: true },
  { title: 'class' },
  { title: 'items', align: 'right' },
  { title: 'attempts', align: 'right' },
  { title: 'died', shrinkTo: 10, wrap: true },
  { title: 'reason', shrinkTo: 20, wrap: true },
];

export function letterLines(
  { dead_letters: letters, total }: DeadLetterPage,
  { colours, width }: Terminal,
): string[] {
  if (letters.length === 0)
    return [
      total
        ? `None of the ${total} dead letters fits.`
        : `No dead letters${total === null ? ' that you see' : ''}: nothing was given up.`,
    ];
  const rows = letters.map((letter) => [
    letter.request_id,
    `${letter.model}@${letter.version}`,
    letter.class,
    `${letter.items.length}/${letter.items_total}`,
    String(letter.attempts),
    letter.died_at.slice(0, 19).replace('T', ' '),
    `${letter.code}: ${letter.reason}`,
  ]);
  const rest = total !== null && total > letters.length ? [colours.dim(`${letters.length} of ${total}`)] : [];
  return [...tableLines(COLUMNS, rows, { width, paintTitle: colours.dim }), ...rest];
}

export async function showLetter(
  id: string,
  options: ApiOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const letter = await apiOf(options, config).ask(
    DeadLetterSchema,
    'GET',
    `${PATH}/${encodeURIComponent(id)}`,
  );
  if (options.json) printJson(terminal, letter);
  else for (const line of detailLines(letter, terminal)) terminal.out(line);
  return EXIT.ok;
}

/** Items shown; --json has all. */
const MOST_SHOWN = 20;

function detailLines(letter: DeadLetter, { colours }: Terminal): string[] {
  const { request_id, model, version, items, items_total, attempts, died_at, expires_at, input_bytes } =
    letter;
  const shown = items.slice(0, MOST_SHOWN);
  return [
    `${colours.bold(request_id)}  ${letter.class}  ${colours.dim(`${model} version ${version}, on ${letter.device_class}`)}`,
    `  given up   ${died_at}, after ${plural(attempts, 'attempt')}; ${items.length} of ${plural(items_total, 'item')}`,
    `  kept until ${expires_at}, ${input_bytes} bytes of inputs`,
    `  trace      ${letter.trace_id}`,
    ...shown.map(({ index, id, error }) => `  item ${id ?? index}: ${itemErrorText(error)}`),
    ...(items.length > shown.length ? [colours.dim(`  and ${items.length - shown.length} more`)] : []),
    `  remuda dead-letters redrive ${request_id}`,
  ];
}

export interface RedriveOptions extends LetterChoice {
  version?: string;
}

export async function redriveLetters(
  ids: readonly string[],
  options: RedriveOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const { version } = options;
  const body = { choose: chosen(ids, options), ...(version === undefined ? {} : { version }) };
  const answer = await apiOf(options, config).ask(RedriveAnswer, 'POST', `${PATH}:redrive`, body);
  if (options.json) printJson(terminal, answer);
  else {
    for (const { request_id, redriven_as } of answer.redriven)
      terminal.out(`${request_id} runs again as ${redriven_as}`);
    for (const { request_id, code, reason } of answer.refused)
      terminal.note(terminal.noteColours.red(`${request_id} stays: ${code}: ${reason}`));
    if (answer.redriven.length + answer.refused.length === 0) terminal.note('No dead letter fits.');
  }
  return answer.refused.length === 0 && answer.redriven.length > 0 ? EXIT.ok : EXIT.failed;
}

export async function discardLetters(
  ids: readonly string[],
  options: LetterChoice,
  { terminal, config }: CommandContext,
): Promise<number> {
  const answer = await apiOf(options, config).ask(
    DiscardAnswer,
    'POST',
    `${PATH}:discard`,
    chosen(ids, options),
  );
  if (options.json) printJson(terminal, answer);
  else terminal.out(`${plural(answer.discarded, 'dead letter')} discarded`);
  return answer.discarded > 0 ? EXIT.ok : EXIT.failed;
}

function chosen(
  ids: readonly string[],
  { model, class: errorClass, limit }: LetterChoice,
): Record<string, unknown> {
  if (ids.length === 0 && model === undefined && errorClass === undefined)
    throw usageError('Say which: ids, or --model or --class for all that fit.');
  return {
    ...(ids.length > 0 ? { ids } : {}),
    ...(model === undefined ? {} : { model }),
    ...(errorClass === undefined ? {} : { class: errorClass }),
    ...(limit === undefined ? {} : { limit }),
  };
}
