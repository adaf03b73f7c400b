/** The lines of a span as rows: objects first, then columns of them. A line that is none fails alone. */
import type { ItemError } from '@remuda/schemas';
import { itemError } from '../../../errors.js';
import type { Column, RowBlock } from '../../columns.js';
import type { RowsWanted } from '../bulk-input.js';
import { blankRows } from './blank-rows.js';
import { eachRecord, placeOf, type TextRecord } from './each-record.js';
import { GrowingColumn } from './growing-column.js';
import { type JsonObject, LineTexts, parseExactly, parseLine } from './json-lines.js';
import { innerOf, isRejected, type LineKind, requestOf } from './line-kinds.js';
import { LineScanner } from './record-scanner.js';
import { columnAs, typeToldFor } from './told-type.js';
import { Turns } from './turns.js';
import { columnOf, jsonColumn, stringColumn } from './typed-column.js';

/** Of a line that could not be read, in the file of errors. */
const RAW_LETTERS = 65_536;

export async function readJsonLines(bytes: Buffer, wanted: Omit<RowsWanted, 'source'>): Promise<RowBlock> {
  const block = new JsonBlock(bytes, wanted);
  await block.read(new Turns());
  return block.block();
}

class JsonBlock {
  readonly #wanted: Omit<RowsWanted, 'source'>;
  readonly #bytes: Buffer;
  readonly #texts: LineTexts;
  readonly #records: TextRecord[] = [];
  /** Of requests, which are columns of JSON in any case; of plain columns none is kept. */
  readonly #rows: Array<JsonObject | null> = [];
  readonly #columns: GrowingColumn[] = [];
  readonly #byName = new Map<string, GrowingColumn>();
  readonly #numbers: number[] = [];
  readonly #failures = new Map<number, ItemError>();

  constructor(bytes: Buffer, wanted: Omit<RowsWanted, 'source'>) {
    this.#wanted = wanted;
    this.#bytes = bytes;
    this.#texts = new LineTexts(bytes);
    for (const name of wanted.columns ?? []) this.#newColumn(name);
  }

  async read(turns: Turns): Promise<void> {
    const { range } = this.#wanted;
    const span = range.kind === 'rows' ? {} : range;
    await eachRecord(this.#bytes, span, new LineScanner(), (record) => this.#take(record), turns);
  }

  block(): RowBlock {
    const { lines = 'columns', rejected } = this.#wanted.read;
    const columns = lines === 'columns' ? this.#plainColumns() : this.#requestColumns(lines);
    return {
      rows: this.#records.length,
      columns: blankRows(columns, this.#failures),
      failures: this.#failures,
      ...(rejected && { rowNumbers: this.#numbers }),
      rawOf: (row) => this.#rawOf(row),
    };
  }

  #take(record: TextRecord): void {
    const row = this.#records.push(record) - 1;
    if (this.#wanted.read.rejected) this.#numbers.push(this.#wanted.firstRow + row);
    const found = this.#objectOf(record, row);
    if (typeof found === 'string') this.#fail(row, found);
    const object = typeof found === 'string' ? null : found;
    if ((this.#wanted.read.lines ?? 'columns') !== 'columns') this.#rows.push(object);
    else if (object) this.#spread(row, object);
  }

  /** What the columns are made from, or why there is nothing. */
  #objectOf(record: TextRecord, row: number): JsonObject | string {
    const line = this.#lineOf(record);
    return typeof line === 'string' || !this.#wanted.read.rejected ? line : this.#rejectedInput(line, row);
  }

  #spread(row: number, object: JsonObject): void {
    if (this.#wanted.columns !== null) {
      for (const column of this.#columns) column.add(row, ownValue(object, column.name));
      return;
    }
    let next = 0;
    for (const name in object) {
      const expected = this.#columns[next];
      const column = expected?.name === name ? expected : (this.#byName.get(name) ?? this.#newColumn(name));
      column.add(row, object[name]);
      next += 1;
    }
  }

  /** There are at most as many rows as were counted; more are an error of the whole piece. */
  #newColumn(name: string): GrowingColumn {
    const column = new GrowingColumn(name, this.#wanted.rows);
    this.#columns.push(column);
    this.#byName.set(name, column);
    return column;
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

  /** Read once more: few rows are asked for. */
  #rawOf(row: number): unknown {
    const record = this.#records[row];
    if (!record || record.fault !== null) return null;
    const object = this.#objectOf(record, row);
    if (typeof object !== 'string') return object;
    return this.#texts.text(record.from, Math.min(record.to, record.from + RAW_LETTERS));
  }

  #plainColumns(): Column[] {
    return this.#columns.map((column) => this.#plainColumn(column));
  }

  #plainColumn(column: GrowingColumn): Column {
    const { name } = column;
    const type = typeToldFor(name, this.#wanted.read);
    const exact = (row: number): unknown => this.#exactRow(row)?.[name];
    if (type === undefined) return column.column(exact);
    const values = column.values();
    // What is a list is told by its numbers: a type is that of a value.
    if (values.some(Array.isArray)) return columnOf(name, values, exact);
    const whole =
      type === 'int64' || type === 'uint64' || type === 'string' ? exactly(values, exact) : values;
    return columnAs(name, type, whole, (row, what) => this.#fail(row, `column "${name}": ${what}`));
  }

  #exactRow(row: number): JsonObject | undefined {
    const record = this.#records[row];
    if (!record || this.#failures.has(row)) return undefined;
    const text = this.#texts.text(record.from, record.to);
    if (!this.#wanted.read.rejected) return parseExactly(text);
    const { input } = parseExactly(text);
    return typeof input === 'string' ? parseExactly(input) : (input as JsonObject);
  }

  #requestColumns(kind: Exclude<LineKind, 'columns'>): Column[] {
    const count = this.#rows.length;
    const ids = new Array<string | null>(count).fill(null);
    const urls = new Array<string | null>(count).fill(null);
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
      urls[row] = parts.url;
      contents[row] = parts.content;
      parameters[row] = parts.parameters;
    }
    const id = stringColumn('custom_id', ids) as Column;
    if (kind === 'openai') return [id, stringColumn('url', urls) as Column, jsonColumn('body', contents)];
    return [id, jsonColumn('inputs', contents), jsonColumn('parameters', parameters)];
  }
}

/** A column may be called "constructor". */
function ownValue(row: JsonObject, name: string): unknown {
  const value = row[name];
  if (value === undefined || typeof value === 'function') return null;
  return name === '__proto__' && !Object.hasOwn(row, name) ? null : value;
}

function exactly(values: readonly unknown[], exact: (row: number) => unknown): unknown[] {
  return values.map((value, row) =>
    typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) ? exact(row) : value,
  );
}
