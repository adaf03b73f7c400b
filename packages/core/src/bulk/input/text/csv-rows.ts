/**
 * Records of CSV as rows: fields by column, then values of a type. A record with another number of fields than the
 * header has, or with a value that is not of its column's type, fails alone.
 */
import type { BulkColumnType, ItemError } from '@remuda/schemas';
import { itemError } from '../../../errors.js';
import type { RowBlock } from '../../columns.js';
import type { RowsWanted } from '../bulk-input.js';
import { blankRows } from './blank-rows.js';
import { type CsvRecord, parseRecord } from './csv-records.js';
import { eachRecord, placeOf, type TextRecord } from './each-record.js';
import { type FieldTaker, isZeroed, TextTaker, takerOf } from './field-takers.js';
import { LineTexts } from './json-lines.js';
import { CsvScanner } from './record-scanner.js';
import { numberOf, typeToldFor } from './told-type.js';
import { TURN_ROWS, Turns } from './turns.js';

const RAW_LETTERS = 65_536;

export async function readCsv(bytes: Buffer, wanted: Omit<RowsWanted, 'source'>): Promise<RowBlock> {
  return new CsvBlock(bytes, wanted).block(new Turns());
}

class CsvBlock {
  readonly #wanted: Omit<RowsWanted, 'source'>;
  readonly #bytes: Buffer;
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
    this.#bytes = bytes;
  }

  async block(turns: Turns): Promise<RowBlock> {
    const { range } = this.#wanted;
    const scanner = new CsvScanner(this.#delimiter);
    const take = (record: TextRecord): unknown => this.#records.push(record);
    await eachRecord(this.#bytes, range.kind === 'rows' ? {} : range, scanner, take, turns);
    const names = this.#wanted.columns ?? this.#header;
    const takers = names.map((name) =>
      takerOf(name, typeToldFor(name, this.#wanted.read), this.#records.length),
    );
    await this.#give(takers, (row, what) => this.#fail(row, what), turns);
    // What turned out to be no numbers is gone through once more: most columns are what they look like.
    const texts = takers.map((taker) =>
      taker.isMistaken ? new TextTaker(taker.name, undefined, this.#records.length) : null,
    );
    const again = texts.filter((taker) => taker !== null);
    if (again.length > 0) await this.#give(again, () => undefined, turns);
    // A record that is there keeps its other fields, its id above all, where one is not of its type.
    const unread = new Map(this.#failures);
    const columns = takers.map((taker, i) =>
      (texts[i] ?? taker).column((row, what) => this.#fail(row, `column "${taker.name}": ${what}`)),
    );
    return {
      rows: this.#records.length,
      columns: blankRows(columns, unread),
      failures: this.#failures,
      rawOf: (row) => this.#rawOf(row),
    };
  }

  async #give(
    takers: readonly FieldTaker[],
    fail: (row: number, what: string) => void,
    turns: Turns,
  ): Promise<void> {
    const expected = this.#header.length;
    const places = takers.map(({ name }) => this.#header.indexOf(name));
    for (let row = 0; row < this.#records.length; row += 1) {
      if (row % TURN_ROWS === 0 && turns.isOver) await turns.next();
      const record = this.#fields(row);
      if (typeof record === 'string') fail(row, record);
      else if (record.length !== expected) fail(row, this.#miscounted(record.length));
      else
        for (let i = 0; i < takers.length; i += 1) {
          const text = record[places[i] as number];
          if (text !== undefined && text !== '') (takers[i] as FieldTaker).take(row, text);
        }
    }
  }

  #fields(row: number): CsvRecord {
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
      this.#header.map((name, i) => [
        name,
        rawValue(record[i] as string, typeToldFor(name, this.#wanted.read)),
      ]),
    );
  }

  #rawText(row: number): string | null {
    const { from, to, fault } = this.#records[row] as TextRecord;
    return fault === null ? this.#texts.text(from, Math.min(to, from + RAW_LETTERS)) : null;
  }
}

function rawValue(text: string, type: BulkColumnType | undefined): unknown {
  if (text === '') return null;
  if (type === 'string' || type === 'json' || isZeroed(text)) return text;
  const number = numberOf(text);
  return number !== undefined && Number.isFinite(number) && String(number) === text.trim() ? number : text;
}
