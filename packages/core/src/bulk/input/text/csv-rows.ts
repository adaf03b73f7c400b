/**
 * Records of CSV as rows: fields by column, then values of a type. A record with another number of fields than the
 * header has, or with a value that is not of its column's type, fails alone.
 */
import type { BulkColumnType, ItemError } from '@remuda/schemas';
import { itemError } from '../../../errors.js';
import type { Column, RowBlock } from '../../columns.js';
import type { RowsWanted } from '../bulk-input.js';
import { blankRows } from './blank-rows.js';
import { type CsvRecord, parseRecord, parseRecords } from './csv-records.js';
import { eachRecord, placeOf, type TextRecord } from './each-record.js';
import { LineTexts } from './json-lines.js';
import { CsvScanner } from './record-scanner.js';
import { columnAs, numberOf } from './told-type.js';
import { columnOf, stringColumn } from './typed-column.js';

const RAW_LETTERS = 65_536;

export function readCsv(bytes: Buffer, wanted: Omit<RowsWanted, 'source'>): RowBlock {
  return new CsvBlock(bytes, wanted).block();
}

class CsvBlock {
  readonly #wanted: Omit<RowsWanted, 'source'>;
  readonly #texts: LineTexts;
  readonly #delimiter: string;
  readonly #header: readonly string[];
  readonly #records: TextRecord[] = [];
  readonly #failures = new Map<number, ItemError>();

  constructor(bytes: Buffer, wanted: Omit<RowsWanted, 'source'>) {
    this.#wanted = wanted;
    this.#texts = new LineTexts(bytes);
    this.#delimiter = wanted.read.delimiter ?? ',';
    this.#header = wanted.read.header ?? [];
    const span = wanted.range.kind === 'rows' ? {} : wanted.range;
    eachRecord(bytes, span, new CsvScanner(this.#delimiter), (record) => this.#records.push(record));
    this.#quoted = bytes.includes(34) ? this.#parsedAtOnce(bytes) : null;
  }

  /** By record, where the span could be parsed as a whole. */
  readonly #quoted: string[][] | null;

  block(): RowBlock {
    const names = this.#wanted.columns ?? this.#header;
    const places = names.map((name) => this.#header.indexOf(name));
    const fields = this.#fieldsOf(places);
    const columns = names.map((name, i) => this.#column(name, fields[i] as Array<string | null>));
    return {
      rows: this.#records.length,
      columns: blankRows(columns, this.#failures),
      failures: this.#failures,
      rawOf: (row) => this.#rawOf(row),
    };
  }

  #parsedAtOnce(bytes: Buffer): string[][] | null {
    const sound = this.#records.every(({ fault }) => fault === null);
    if (!sound || this.#texts.invalidAt(0, bytes.length) >= 0) return null;
    return parseRecords(this.#texts.text(0, bytes.length), this.#delimiter, this.#records.length);
  }

  /** Texts by wanted column and row; null: nothing stands there. */
  #fieldsOf(places: readonly number[]): Array<Array<string | null>> {
    const fields = places.map(() => new Array<string | null>(this.#records.length).fill(null));
    const expected = this.#header.length;
    for (let row = 0; row < this.#records.length; row += 1) {
      const record = this.#fields(row);
      if (typeof record === 'string') this.#fail(row, record);
      else if (record.length !== expected) this.#fail(row, this.#miscounted(record.length));
      else
        for (let i = 0; i < places.length; i += 1) {
          const text = record[places[i] as number];
          if (text !== undefined && text !== '') (fields[i] as Array<string | null>)[row] = text;
        }
    }
    return fields;
  }

  #fields(row: number): CsvRecord {
    const quoted = this.#quoted?.[row];
    if (quoted) return quoted;
    const { from, to, fault } = this.#records[row] as TextRecord;
    if (fault !== null) return fault;
    const invalid = this.#texts.invalidAt(from, to);
    if (invalid >= 0) return `is not valid UTF-8 at its byte ${invalid}; save the file as UTF-8`;
    return parseRecord(this.#texts.text(from, to), this.#delimiter);
  }

  #miscounted(found: number): string {
    const expected = this.#header.length;
    const first = this.#header[found];
    const what =
      found < expected
        ? `column "${first}" and those behind it are missing`
        : 'there is more than the header names';
    return `has ${found} ${found === 1 ? 'field' : 'fields'} where the header has ${expected}: ${what}; put a field that holds ${this.#delimiter === ',' ? 'a comma' : 'the delimiter'} in quotes`;
  }

  #column(name: string, texts: Array<string | null>): Column {
    const type = this.#wanted.read.types?.[name];
    if (type !== undefined)
      return columnAs(name, type, texts, (row, what) => this.#fail(row, `column "${name}": ${what}`));
    return untypedColumn(name, texts);
  }

  #fail(row: number, what: string): void {
    if (this.#failures.has(row)) return;
    const record = this.#records[row] as TextRecord;
    const { line, byte } = record;
    const place = placeOf(record, this.#wanted.firstRow + row);
    this.#failures.set(
      row,
      itemError('invalid_row', `${place}${what.startsWith('column') ? ', ' : ' '}${what}`, {
        ...(line !== null && { line }),
        ...(byte !== null && { byte }),
      }),
    );
  }

  /** Numbers as numbers, so that the file of errors can be read as JSONL. */
  #rawOf(row: number): unknown {
    const record = this.#fields(row);
    if (typeof record === 'string' || record.length !== this.#header.length) return this.#rawText(row);
    return Object.fromEntries(
      this.#header.map((name, i) => [name, rawValue(record[i] as string, this.#wanted.read.types?.[name])]),
    );
  }

  #rawText(row: number): string | null {
    const { from, to, fault } = this.#records[row] as TextRecord;
    return fault === null ? this.#texts.text(from, Math.min(to, from + RAW_LETTERS)) : null;
  }
}

/** Numbers where all are; a number that begins with 0 is an id, whose zeros count. */
function untypedColumn(name: string, texts: Array<string | null>): Column {
  const numbers = new Array<number | null>(texts.length).fill(null);
  for (let row = 0; row < texts.length; row += 1) {
    const text = texts[row];
    if (text === null || text === undefined) continue;
    const number = isZeroed(text) ? undefined : numberOf(text);
    if (number === undefined) return stringColumn(name, texts) as Column;
    numbers[row] = number;
  }
  return columnOf(name, numbers, (row) => {
    const text = (texts[row] as string).trim();
    return /^-?\d+$/.test(text) ? BigInt(text) : undefined;
  });
}

function isZeroed(text: string): boolean {
  const first = text.charCodeAt(0);
  return first === 48 ? /^0\d/.test(text) : first === 45 && /^-0\d/.test(text);
}

function rawValue(text: string, type: BulkColumnType | undefined): unknown {
  if (text === '') return null;
  if (type === 'string' || type === 'json' || isZeroed(text)) return text;
  const number = numberOf(text);
  return number !== undefined && Number.isFinite(number) && String(number) === text.trim() ? number : text;
}
