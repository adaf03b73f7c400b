/**
 * A column that rows are added to one by one: numbers go straight into their array, so that the objects they came in
 * are gone at once; with the first value that is no number it holds values of any kind.
 */
import type { Column } from '../../columns.js';
import { columnOf, type ExactValue, nullsOf } from './typed-column.js';

export class GrowingColumn {
  readonly name: string;
  readonly #numbers: Float64Array;
  /** 1 where the row has a number. */
  readonly #given: Uint8Array;
  #values: unknown[] | null = null;
  #isLarge = false;

  constructor(name: string, rows: number) {
    this.name = name;
    this.#numbers = new Float64Array(rows);
    this.#given = new Uint8Array(rows);
  }

  /** What is not added has no value. */
  add(row: number, value: unknown): void {
    if (typeof value === 'number' && this.#values === null) {
      this.#numbers[row] = value;
      this.#given[row] = 1;
      if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER) this.#isLarge = true;
    } else if (value !== null && value !== undefined) {
      this.#values ??= this.values();
      this.#values[row] = value;
    }
  }

  values(): unknown[] {
    return this.#values ?? Array.from(this.#given, (given, row) => (given ? this.#numbers[row] : null));
  }

  /** @param exact where integers may be larger than a double holds */
  column(exact: ExactValue): Column {
    const isEmpty = !this.#given.includes(1);
    if (this.#values !== null || this.#isLarge || isEmpty) return columnOf(this.name, this.values(), exact);
    return { name: this.name, type: 'float64', values: this.#numbers, ...nullsOf(this.#given) };
  }
}
