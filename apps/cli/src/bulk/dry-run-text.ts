/** A dry run as tables: the input, what makes what, the output, how it would be cut and how long it would take. */
import { duration, plural } from '../terminal/figures.js';
import { type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import type { DryRun } from './dry-run.js';
import { count, rate } from './progress-text.js';

/** Columns that are listed; --json has all. */
const MOST_COLUMNS = 40;

export function dryRunLines(found: DryRun, terminal: Terminal): string[] {
  const { colours } = terminal;
  return [
    ...inputLines(found, terminal),
    '',
    ...mappingLines(found, terminal),
    '',
    ...outputLines(found, terminal),
    '',
    ...planLines(found, terminal),
    ...(found.problems.length > 0
      ? [colours.red('It would not run:'), ...found.problems.map((text) => colours.red(`  ${text}`))]
      : ['Nothing was written.']),
  ];
}

function table(columns: readonly Column[], rows: string[][], { colours, width }: Terminal): string[] {
  return tableLines(columns, rows, { width, paintTitle: colours.dim });
}

function inputLines({ input }: DryRun, terminal: Terminal): string[] {
  const { format, compression, rows, bytes, columns } = input;
  const packed = compression === 'none' ? '' : `, ${compression}`;
  const size = [
    rows === null ? undefined : `${count(rows)} rows`,
    bytes === null ? undefined : `${count(bytes)} bytes`,
  ];
  const shown = columns
    .slice(0, MOST_COLUMNS)
    .map(({ name, type }) => [`  ${name}`, type ?? 'by its values']);
  const more = columns.length - shown.length;
  return [
    `${terminal.colours.bold('input')}  ${[`${format}${packed}`, ...size.filter(Boolean)].join(', ')}`,
    ...table([{ title: '  column', shrinkTo: 20 }, { title: 'type' }], shown, terminal),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

function mappingLines({ mapping, model, version }: DryRun, terminal: Terminal): string[] {
  const rows = mapping.inputs.map(({ input, datatype, shape, columns, types }) => [
    `  ${input}`,
    datatype,
    columns === '' ? '' : shape || 'one value',
    columns,
    types,
  ]);
  return [
    `${terminal.colours.bold('mapping')}  to ${model} version ${version}`,
    ...(rows.length === 0
      ? ['  each line holds its inputs by name']
      : table(
          [
            { title: '  input' },
            { title: 'datatype' },
            { title: 'row' },
            { title: 'columns', shrinkTo: 16, wrap: true },
            { title: 'types', shrinkTo: 16, wrap: true },
          ],
          rows,
          terminal,
        )),
  ];
}

function outputLines({ output }: DryRun, terminal: Terminal): string[] {
  const rows = output.map(({ column, type, what }) => [`  ${column}`, type, what]);
  return [
    terminal.colours.bold('output'),
    ...table(
      [
        { title: '  column', shrinkTo: 20 },
        { title: 'type', shrinkTo: 20 },
        { title: '', shrinkTo: 20 },
      ],
      rows,
      terminal,
    ),
  ];
}

function planLines({ chunks, sample }: DryRun, { colours }: Terminal): string[] {
  if (!chunks || !sample) return [];
  const { rows, rows_exact, chunk_rows, chunks: pieces, window, seconds, device_seconds, instances } = chunks;
  const about = rows_exact ? '' : 'about ';
  const ofAll =
    rows === null || pieces === null || seconds === null || device_seconds === null
      ? ['  how many rows there are is not known before the end of the file']
      : [
          `  ${about}${plural(rows, 'row')} in ${plural(pieces, 'chunk')} of up to ${count(chunk_rows)} rows, ${window} under way at once`,
          `  about ${duration(seconds)} on ${plural(instances, 'instance')}, ${duration(device_seconds)} of device time`,
        ];
  return [
    colours.bold('plan'),
    `  ${plural(sample.rows, 'row')} scored as a sample, ${count(sample.failed)} failed: ${rate(chunks.rows_per_s)} rows/s`,
    ...ofAll,
  ];
}
