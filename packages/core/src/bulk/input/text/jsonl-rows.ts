/** The lines of a span as rows: objects first, then columns of them. A line that is none fails alone. */
import type { ItemError } from '@remuda/schemas';
import { itemError } from '../../../errors.js';
import type { Column, RowBlock } from '../../columns.js';
import type { RowsWanted } from '../bulk-input.js';
import { blankRows } from './blank-rows.js';
import { eachRecord, placeOf, type TextRecord } from './each-record.js';
import { type JsonObject, LineTexts, parseExactly, parseLine } from './json-lines.js';
import { innerOf, isRejected, type LineKind, requestOf } from './line-kinds.js';
import { LineScanner } from './record-scanner.js';
import { columnAs } from './told-type.js';
import { columnOf, jsonColumn, stringColumn } from './typed-column.js';

/** Of a line that could not be read, in the file of errors. */
const RAW_LETTERS = 65_536;

export function readJsonLines(bytes: Buffer, wanted: Omit<RowsWanted, 'source'>): RowBlock {
  return new JsonBlock(bytes, wanted).block();
}

class JsonBlock {
  readonly #wanted: Omit<RowsWanted, 'source'>;
  readonly #texts: LineTexts;
  readonly #records: TextRecord[] = [];
  /** null: the row has failed. */
  readonly #rows: Array<JsonObject | null> = [];
  readonly #numbers: number[] = [];
  readonly #failures = new Map<number, ItemError>();

  constructor(bytes: Buffer, wanted: Omit<RowsWanted, 'source'>) {
    this.#wanted = wanted;
    this.#texts = new LineTexts(bytes);
    const span = wanted.range.kind === 'rows' ? {} : wanted.range;
    eachRecord(bytes, span, new LineScanner(), (record) => this.#take(record));
  }

  block(): RowBlock {
    const { lines = 'columns', rejected } = this.#wanted.read;
    const columns = lines === 'columns' ? this.#plainColumns() : this.#requestColumns(lines);
    return {
      rows: this.#rows.length,
      columns: blankRows(columns, this.#failures),
      failures: this.#failures,
      ...(rejected && { rowNumbers: this.#numbers }),
      rawOf: (row) => this.#rows[row] ?? this.#rawText(row),
    };
  }

  #take(record: TextRecord): void {
    const row = this.#records.push(record) - 1;
    this.#numbers.push(this.#wanted.firstRow + row);
    const line = this.#lineOf(record);
    const found =
      typeof line === 'string' || !this.#wanted.read.rejected ? line : this.#rejectedInput(line, row);
    if (typeof found === 'string') this.#fail(row, found);
    this.#rows.push(typeof found === 'string' ? null : found);
  }

  #lineOf({ from, to, fault }: TextRecord): JsonObject | string {
    if (fault !== null) return fault;
    const invalid = this.#texts.invalidAt(from, to);
    if (invalid >= 0) return `is not valid UTF-8 at its byte ${invalid}; save the file as UTF-8`;
    return parseLine(this.#texts.text(from, to));
  }

  #rejectedInput(line: JsonObject, row: number): JsonObject | string {
    if (!isRejected(line))
      return 'is no line of a file of errors, as the first one is: {"row", "custom_id", "code", "message", "input"}';
    this.#numbers[row] = line.row as number;
    return (
      innerOf(line.input) ?? 'input: it was no JSON object and still is none; put the mended row in its place'
    );
  }

  /** @param what goes behind "line 12 (byte 3456)" */
  #fail(row: number, what: string): void {
    if (this.#failures.has(row)) return;
    const record = this.#records[row] as TextRecord;
    const place = placeOf(record, this.#wanted.firstRow + row);
    const { line, byte } = record;
    this.#failures.set(
      row,
      itemError('invalid_row', `${place} ${what}`, {
        ...(line !== null && { line }),
        ...(byte !== null && { byte }),
      }),
    );
  }

  #rawText(row: number): string | null {
    const record = this.#records[row];
    if (!record || record.fault !== null) return null;
    return this.#texts.text(record.from, Math.min(record.to, record.from + RAW_LETTERS));
  }

  #plainColumns(): Column[] {
    return (this.#wanted.columns ?? this.#names()).map((name) => this.#plainColumn(name));
  }

  #names(): string[] {
    const names = new Set<string>();
    for (const row of this.#rows) for (const name in row) names.add(name);
    return [...names];
  }

  #plainColumn(name: string): Column {
    const rows = this.#rows;
    const values = new Array<unknown>(rows.length).fill(null);
    for (let row = 0; row < rows.length; row += 1) values[row] = ownValue(rows[row], name);
    const type = this.#wanted.read.types?.[name];
    const exact = (row: number): unknown => this.#exactRow(row)?.[name];
    // What is a list is told by its numbers: a type is that of a value.
    if (type === undefined || values.some(Array.isArray)) return columnOf(name, values, exact);
    const whole =
      type === 'int64' || type === 'uint64' || type === 'string' ? exactly(values, exact) : values;
    return columnAs(name, type, whole, (row, what) => this.#fail(row, `column "${name}": ${what}`));
  }

  #exactRow(row: number): JsonObject | undefined {
    const record = this.#records[row];
    if (!record || !this.#rows[row]) return undefined;
    const text = this.#texts.text(record.from, record.to);
    if (!this.#wanted.read.rejected) return parseExactly(text);
    const { input } = parseExactly(text);
    return typeof input === 'string' ? parseExactly(input) : (input as JsonObject);
  }

  #requestColumns(kind: Exclude<LineKind, 'columns'>): Column[] {
    const count = this.#rows.length;
    const ids = new Array<string | null>(count).fill(null);
    const contents = new Array<JsonObject | null>(count).fill(null);
    const parameters = new Array<JsonObject | null>(count).fill(null);
    for (const [row, line] of this.#rows.entries()) {
      if (line === null) continue;
      const parts = requestOf(line, kind);
      if (typeof parts === 'string') {
        this.#fail(row, parts);
        continue;
      }
      ids[row] = parts.customId;
      contents[row] = parts.content;
      parameters[row] = parts.parameters;
    }
    const id = stringColumn('custom_id', ids) as Column;
    if (kind === 'openai') return [id, jsonColumn('body', contents)];
    return [id, jsonColumn('inputs', contents), jsonColumn('parameters', parameters)];
  }
}

/** A column may be called "constructor". */
function ownValue(row: JsonObject | null | undefined, name: string): unknown {
  if (!row) return null;
  const value = row[name];
  if (value === undefined || typeof value === 'function') return null;
  return name === '__proto__' && !Object.hasOwn(row, name) ? null : value;
}

function exactly(values: readonly unknown[], exact: (row: number) => unknown): unknown[] {
  return values.map((value, row) =>
    typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) ? exact(row) : value,
  );
}
