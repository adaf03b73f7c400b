/** What becomes of the fields of a column as records go by: numbers at once, what has to be looked at whole as texts. */
import type { BulkColumnType } from '@remuda/schemas';
import type { Column, NumericType, NumericValues } from '../../columns.js';
import { NUMERIC_ARRAY } from '../../numeric-types.js';
import { CONVERTERS, columnAs, type Misfit, misfitOf, numberOf } from './told-type.js';
import { columnOf, nullsOf, stringColumn } from './typed-column.js';

export interface FieldTaker {
  readonly name: string;
  /** It took the column for numbers, and it is none. */
  readonly isMistaken: boolean;
  /** A field that is not empty; a row without one has no value. */
  take(row: number, text: string): void;
  column(misfit: Misfit): Column;
}

/** Of any type: which it is, and what it takes, was settled with it. */
type Elements = NumericValues & Record<number, number | bigint>;

/** @param type undefined: numbers where all are */
export function takerOf(name: string, type: BulkColumnType | undefined, rows: number): FieldTaker {
  if (type === undefined) return new GuessTaker(name, rows);
  return type === 'string' || type === 'json'
    ? new TextTaker(name, type, rows)
    : new NumberTaker(name, type, rows);
}

export class TextTaker implements FieldTaker {
  readonly name: string;
  readonly isMistaken = false;
  readonly #type: 'string' | 'json' | undefined;
  readonly #texts: Array<string | null>;

  constructor(name: string, type: 'string' | 'json' | undefined, rows: number) {
    this.name = name;
    this.#type = type;
    this.#texts = new Array<string | null>(rows).fill(null);
  }

  take(row: number, text: string): void {
    this.#texts[row] = text;
  }

  column(misfit: Misfit): Column {
    if (this.#type === 'json') return columnAs(this.name, 'json', this.#texts, misfit);
    return stringColumn(this.name, this.#texts) as Column;
  }
}

class NumberTaker implements FieldTaker {
  readonly name: string;
  readonly isMistaken = false;
  readonly #type: NumericType;
  readonly #values: Elements;
  readonly #given: Uint8Array;
  readonly #misfits = new Map<number, string>();

  constructor(name: string, type: NumericType, rows: number) {
    this.name = name;
    this.#type = type;
    this.#values = new NUMERIC_ARRAY[type](rows) as Elements;
    this.#given = new Uint8Array(rows);
  }

  take(row: number, text: string): void {
    const value = CONVERTERS[this.#type](text);
    if (value === undefined) this.#misfits.set(row, text);
    else {
      this.#values[row] = value;
      this.#given[row] = 1;
    }
  }

  column(misfit: Misfit): Column {
    for (const [row, text] of this.#misfits) misfit(row, misfitOf(text, this.#type));
    return { name: this.name, type: this.#type, values: this.#values, ...nullsOf(this.#given) };
  }
}

class GuessTaker implements FieldTaker {
  readonly name: string;
  isMistaken = false;
  readonly #numbers: Float64Array;
  readonly #given: Uint8Array;
  /** Integers that a double does not hold. */
  readonly #large = new Map<number, bigint>();

  constructor(name: string, rows: number) {
    this.name = name;
    this.#numbers = new Float64Array(rows);
    this.#given = new Uint8Array(rows);
  }

  take(row: number, text: string): void {
    if (this.isMistaken) return;
    // A number that begins with 0 is an id, whose zeros count.
    const number = isZeroed(text) ? undefined : numberOf(text);
    if (number === undefined) {
      this.isMistaken = true;
      return;
    }
    this.#numbers[row] = number;
    this.#given[row] = 1;
    const isLarge = number > Number.MAX_SAFE_INTEGER || number < Number.MIN_SAFE_INTEGER;
    if (isLarge && /^\s*-?\d+\s*$/.test(text)) this.#large.set(row, BigInt(text.trim()));
  }

  column(): Column {
    if (this.#large.size > 0 || !this.#given.includes(1)) {
      const values = Array.from(this.#given, (given, row) => (given ? this.#numbers[row] : null));
      return columnOf(this.name, values, (row) => this.#large.get(row));
    }
    return { name: this.name, type: 'float64', values: this.#numbers, ...nullsOf(this.#given) };
  }
}

export function isZeroed(text: string): boolean {
  const first = text.charCodeAt(0);
  return first === 48 ? /^0\d/.test(text) : first === 45 && /^-0\d/.test(text);
}
