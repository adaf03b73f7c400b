/**
 * CSV as RFC 4180 has it, lines ended by a line feed: a cell for a scalar; NAME_0, NAME_1, … for rows of a known shape
 * of up to 64 elements; else lists as JSON in one cell. No value is an empty cell.
 */
import { elementCount } from '@remuda/schemas';
import type { ChunkResult } from '../chunk.js';
import type { Column } from '../columns.js';
import { columnJson, elementJson, outputJson } from './json-values.js';
import type { NamedOutput, OutputLayout } from './output-layout.js';
import { failedRows, type OutputRows, outputRows } from './output-rows.js';
import { TextBuffer } from './text-buffer.js';
import type { TextFormat } from './text-output.js';

const MOST_CELLS = 64;

export function csvLines(layout: OutputLayout): TextFormat {
  return { header: headerOf(layout), lines: (result) => linesOf(result, layout) };
}

function headerOf(layout: OutputLayout): string {
  const names = [
    layout.row,
    ...(layout.id === null ? [] : [layout.id]),
    ...layout.kept.map(({ name }) => name),
    ...layout.outputs.flatMap(cellNames),
    layout.errorCode,
    layout.errorMessage,
  ];
  return `${names.map(quoted).join(',')}\n`;
}

/** Elements in row-major order where they have a cell each. */
function cellNames(output: NamedOutput): string[] {
  const count = cellCount(output);
  if (count === null) return [output.column];
  return Array.from({ length: count }, (_, i) => `${output.column}_${i}`);
}

/** null: one cell for the whole. */
function cellCount({ scalar, rowShape }: NamedOutput): number | null {
  if (scalar || rowShape.includes(null)) return null;
  const count = elementCount(rowShape as number[]);
  return count >= 1 && count <= MOST_CELLS ? count : null;
}

/** Cells of a row, with a comma before each. */
type Cells = (row: number) => string;

function linesOf(result: ChunkResult, layout: OutputLayout): Uint8Array {
  const failed = failedRows(result);
  const errors = new Map(result.failures.map(({ index, error }) => [index, error]));
  const cells: Cells[] = [
    ...(layout.id === null ? [] : [(row: number) => `,${quoted(result.ids?.[row] ?? '')}`]),
    ...layout.kept.map(({ name }) => keptCells(result.kept.find((one) => one.name === name))),
    ...layout.outputs.map((output) => outputCells(output, outputRows(result, output, failed, true))),
  ];
  const text = new TextBuffer();
  for (let i = 0; i < result.rows; i++) {
    let line = String(result.rowNumbers?.[i] ?? result.firstRow + i);
    for (const cell of cells) line += cell(i);
    const error = errors.get(i);
    text.add(error ? `${line},${quoted(error.code)},${quoted(error.message)}\n` : `${line},,\n`);
  }
  return text.bytes();
}

function keptCells(column: Column | undefined): Cells {
  if (!column) return () => ',';
  const { nulls } = column;
  const present = keptText(column);
  return (row) => (nulls?.[row] === 1 ? ',' : `,${present(row)}`);
}

function keptText(column: Column): (row: number) => string {
  switch (column.type) {
    case 'string':
      return (row) => quoted(column.values[row] ?? '');
    case 'bytes':
      return (row) => Buffer.from(column.values[row] ?? []).toString('base64');
    case 'json':
      return (row) => {
        const value = column.values[row];
        return value === null || value === undefined || typeof value === 'string'
          ? quoted(value ?? '')
          : jsonText(columnJson(column)(row));
      };
    default: {
      const json = columnJson(column);
      return (row) => jsonText(json(row));
    }
  }
}

function outputCells(output: NamedOutput, rows: OutputRows | null): Cells {
  const count = cellCount(output);
  const empty = ','.repeat(count ?? 1);
  if (!rows) return () => empty;
  if (count === null) {
    const json = outputJson(rows, output.scalar);
    return (row) => `,${jsonText(json(row))}`;
  }
  const element = elementJson(rows);
  return (row) => {
    if (!rows.shapeOf(row)) return empty;
    const start = rows.starts[row] as number;
    let cells = '';
    for (let i = 0; i < count; i++) cells += `,${jsonText(element(start + i))}`;
    return cells;
  };
}

/** Numbers as they are; JSON strings (texts, NaN, 64-bit integers) without their quotes; lists and objects quoted. */
function jsonText(json: string | undefined): string {
  if (json === undefined) return '';
  const first = json.charCodeAt(0);
  if (first === QUOTE) return quoted(JSON.parse(json) as string);
  return first === BRACKET || first === BRACE ? quoted(json) : json;
}

const QUOTE = 0x22;
const BRACKET = 0x5b;
const BRACE = 0x7b;

const NEEDS_QUOTES = /[",\r\n]|^\s|\s$/;

function quoted(text: string): string {
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
