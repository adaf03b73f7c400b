/**
 * A column that is put together from pieces, whatever they come from: numbers are copied from array to array, and there
 * is no object for a value.
 */
import type { Column, NumericType, NumericValues } from '../../columns.js';
import { NUMERIC_ARRAY } from '../../numeric-types.js';

/** Marks of nulls, made when the first is met. */
class Nulls {
  #marks: Uint8Array | undefined;

  mark(row: number, capacity: number): void {
    const marks = this.#room(Math.max(capacity, row + 1));
    marks[row] = 1;
  }

  marks(rows: number): { nulls?: Uint8Array } {
    return this.#marks ? { nulls: this.#room(rows).subarray(0, rows) } : {};
  }

  #room(capacity: number): Uint8Array {
    if (!this.#marks || this.#marks.length < capacity) {
      const larger = new Uint8Array(capacity);
      if (this.#marks) larger.set(this.#marks);
      this.#marks = larger;
    }
    return this.#marks;
  }
}

/** Bits, lowest first; 0: null. */
export interface Validity {
  bits: Uint8Array;
  /** Of the first value of the piece. */
  offset: number;
}

abstract class Growing {
  protected rows = 0;
  readonly #nulls = new Nulls();

  constructor(
    readonly name: string,
    protected readonly expected: number,
  ) {}

  get length(): number {
    return this.rows;
  }

  protected nulls(): { nulls?: Uint8Array } {
    return this.#nulls.marks(this.rows);
  }

  /** Of the `count` values from the next row on. */
  protected markNulls(validity: Validity | null, count: number): void {
    if (!validity) return;
    const { bits, offset } = validity;
    for (let i = 0; i < count; i++) {
      const bit = offset + i;
      if (((bits[bit >> 3] as number) >> (bit & 7)) & 1) continue;
      this.#nulls.mark(this.rows + i, this.expected);
    }
  }
}

export class GrowingNumbers extends Growing {
  #values: NumericValues;

  constructor(
    name: string,
    readonly type: NumericType,
    expected: number,
  ) {
    super(name, expected);
    this.#values = new NUMERIC_ARRAY[type](expected);
  }

  append(values: NumericValues, validity: Validity | null): void {
    const end = this.rows + values.length;
    if (end > this.#values.length) {
      const larger = new NUMERIC_ARRAY[this.type](Math.max(end, this.#values.length * 2));
      setNumbers(larger, this.#values, 0);
      this.#values = larger;
    }
    setNumbers(this.#values, values, this.rows);
    this.markNulls(validity, values.length);
    this.rows = end;
  }

  finish(): Column {
    const values = this.#values.subarray(0, this.rows) as NumericValues;
    return { name: this.name, type: this.type, values, ...this.nulls() };
  }
}

/** Of one type: the compiler knows no more of the pair than that each is one of ten. */
function setNumbers(target: NumericValues, values: NumericValues, at: number): void {
  (target as Float64Array).set(values as Float64Array, at);
}

/** Strings, bytes, JSON: values that are objects in any case. */
export class GrowingValues extends Growing {
  readonly #values: unknown[] = [];

  constructor(
    name: string,
    readonly type: 'string' | 'bytes' | 'json',
    expected: number,
  ) {
    super(name, expected);
  }

  /** null: there is none. */
  add(value: unknown): void {
    this.#values.push(value);
    if (value === null) this.markNulls(ONE_NULL, 1);
    this.rows++;
  }

  finish(): Column {
    return { name: this.name, type: this.type, values: this.#values, ...this.nulls() } as Column;
  }
}

const ONE_NULL: Validity = { bits: new Uint8Array(1), offset: 0 };

export type GrowingColumn = GrowingNumbers | GrowingValues | GrowingLists;

export class GrowingLists extends Growing {
  #offsets: Uint32Array;

  constructor(
    name: string,
    readonly child: GrowingColumn,
    expected: number,
  ) {
    super(name, expected);
    this.#offsets = new Uint32Array(expected + 1);
  }

  /** Rows whose elements were appended to the child before. @param lengths of each */
  append(lengths: ArrayLike<number>, validity: Validity | null): void {
    const end = this.rows + lengths.length;
    if (end + 1 > this.#offsets.length) {
      const larger = new Uint32Array(Math.max(end + 1, this.#offsets.length * 2));
      larger.set(this.#offsets);
      this.#offsets = larger;
    }
    let at = this.#offsets[this.rows] as number;
    for (let i = 0; i < lengths.length; i++) {
      at += lengths[i] as number;
      this.#offsets[this.rows + i + 1] = at;
    }
    this.markNulls(validity, lengths.length);
    this.rows = end;
  }

  finish(): Column {
    const offsets = this.#offsets.subarray(0, this.rows + 1);
    return { name: this.name, type: 'list', offsets, child: this.child.finish(), ...this.nulls() };
  }
}
