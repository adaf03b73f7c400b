/** `remuda score`: what can be given. */
import { BULK_COLUMN_TYPES, BULK_FORMATS, BULK_OUTPUT_FORMATS, type BulkColumnType } from '@remuda/schemas';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { withApi } from './api-options.js';
import type { CommandContext } from './commands/context.js';
import { type NamedValue, printable, wholeNumber } from './commands/option-values.js';

type Run = (context: CommandContext) => Promise<number>;
type Choose = (run: Run) => void;

const MOST_WORKERS = 64;
const MOST_TOP_K = 1_000;
const MOST_CHUNK_ROWS = 1_000_000;

const ENDS = `How it ends:
  0  every row has an answer
  1  the job has failed, was cancelled, or the API refused it
  2  the command line, the input or the mapping is not right; an output that exists; nothing was run
  3  no API answers at the address
  4  paused by something else than this command: it says what, and how to go on
  5  done, but some rows failed: each stands in the output with its error, and in the errors file
  130, 143  Ctrl-C, SIGTERM: paused; the command that goes on is printed. A second one leaves at once

Examples:
  remuda score --local --model text-direction --in 'scans/*.png' --out directions.jsonl
  remuda score --model churn@3 --in people.parquet --map 'x=[f0..f29]' --keep id --out scored.parquet`;

export function addScore(program: Command, choose: Choose): void {
  const command = program
    .command('score')
    .summary('score a file of rows: a file of answers comes out')
    .description(
      'Scores every row of a file (JSONL, CSV, Parquet, Arrow, images) and writes exactly one answer or error for each.',
    );
  addPlaces(command);
  addMeaning(command);
  addAnswers(command);
  addCourse(command);
  withApi(command)
    .addHelpText('after', `\n${ENDS}`)
    .action((options) =>
      choose(async (context) => (await import('./commands/score.js')).score(options, context)),
    );
}

function addPlaces(command: Command): void {
  command
    .option('--model <name[@version]>', 'model that scores; version by number or alias')
    .option(
      '--in <place>',
      'file, folder or glob of images, http(s)://…, s3://…, file:///… of the server, "-" standard input',
    )
    .option('--out <place>', 'file, s3://bucket/key, or file:///… of the server')
    .option('--errors <place>', 'where rows that failed go (default: beside the output, NAME.errors.jsonl)')
    .addOption(new Option('--format <format>', 'of the input (default: by its ending)').choices(BULK_FORMATS))
    .addOption(
      new Option('--out-format <format>', 'of the output (default: by its ending)').choices(
        BULK_OUTPUT_FORMATS,
      ),
    )
    .option('--delimiter <character>', 'of CSV (default: a comma)')
    .option('--overwrite', 'take the place of an output that is there');
}

function addMeaning(command: Command): void {
  command
    .option(
      '--map <input=columns>',
      "columns that make an input: 'x=[f0..f29]', 'x=[a,b]' stack, 'x=embedding' takes one; repeatable",
      inputColumns,
    )
    .option('--types <column=type,...>', `types of CSV columns: ${BULK_COLUMN_TYPES.join(', ')}`, columnTypes)
    .option('--id-column <column>', 'column that identifies a row (default: custom_id, where there is one)')
    .option('--parameters <json>', 'parameters of the model, for all rows', jsonObject);
}

function addAnswers(command: Command): void {
  command
    .option('--keep <columns>', 'columns that are written beside the answers, separated by commas', names)
    .option('--outputs <names>', 'outputs that are written, separated by commas (default: all)', names)
    .addOption(
      new Option('--top-k <k>', 'of each output the k largest elements and their places').argParser(
        wholeNumber(1, MOST_TOP_K),
      ),
    )
    .option('--argmax', 'of each output the place of its largest element')
    .option('--unordered', 'rows in the order in which they were done: saves a copy at the end');
}

function addCourse(command: Command): void {
  command
    .addOption(
      new Option('--max-errors <n|p%>', 'stop once more rows than this have failed').argParser(maxErrors),
    )
    .addOption(new Option('--priority <n>', '0 goes first, 9 last').argParser(wholeNumber(0, 9)))
    .addOption(
      new Option('--chunk-rows <n>', 'most rows of a chunk (default: about a second of work)').argParser(
        wholeNumber(1, MOST_CHUNK_ROWS),
      ),
    )
    .option('--webhook <url>', 'address that is told of the end')
    .option(
      '--idempotency-key <key>',
      'your name for this call: sent again with the same content, it starts no second job',
      printable,
    )
    .option('--detach', 'start it, and leave it to the server')
    .option('--dry-run', 'show schema, mapping, chunks and an estimate from a sample; write nothing')
    .option('--local', 'on this machine alone: an embedded Redis and workers, no server')
    .addOption(
      new Option('--workers <n>', 'worker processes of --local (default: 1)').argParser(
        wholeNumber(1, MOST_WORKERS),
      ),
    )
    .option('--models <folder>', 'model repository of --local (default: REMUDA_MODELS, else ./models)')
    .option('--resume <id>', 'go on with a job: follow it to its end and fetch its output');
}

/** x=[f0..f29]; repeatable. */
export function inputColumns(text: string, before: readonly NamedValue[] = []): NamedValue[] {
  const at = text.indexOf('=');
  if (at > 0 && at < text.length - 1)
    return [...before, { name: text.slice(0, at), value: text.slice(at + 1) }];
  throw new InvalidArgumentError("Expected INPUT=COLUMNS, such as 'x=[f0..f29]' or 'x=embedding'.");
}

/** a=int64,b=float32; repeatable. */
export function columnTypes(
  text: string,
  before: Record<string, BulkColumnType> = {},
): Record<string, BulkColumnType> {
  const found = { ...before };
  for (const part of text.split(',')) {
    const at = part.lastIndexOf('=');
    const type = part.slice(at + 1).trim() as BulkColumnType;
    if (at < 1 || !BULK_COLUMN_TYPES.includes(type))
      throw new InvalidArgumentError(`Expected COLUMN=TYPE; types are ${BULK_COLUMN_TYPES.join(', ')}.`);
    found[part.slice(0, at).trim()] = type;
  }
  return found;
}

/** Separated by commas; repeatable. */
export function names(text: string, before: readonly string[] = []): string[] {
  const found = text.split(',').map((name) => name.trim());
  if (found.every((name) => name !== '')) return [...before, ...found];
  throw new InvalidArgumentError('Expected names separated by commas.');
}

/** 100, or 1%. */
export function maxErrors(text: string): number | string {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  if (/^(100|\d{1,2})(\.\d+)?%$/.test(text)) return text;
  throw new InvalidArgumentError('Expected a number of rows, or a share such as 1%.');
}

export function jsonObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Told below.
  }
  throw new InvalidArgumentError('Expected a JSON object, such as \'{"decimals": 0}\'.');
}
