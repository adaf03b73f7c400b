/**
 * Values as they come from JSON, as one column: numbers, texts and lists of numbers in the arrays that mapping is fast
 * on, where all values of the block agree; anything else stays JSON.
 */
import type { Column } from '../../columns.js';

/** The value of a row once more, with integers that a double cannot hold as bigint. */
export type ExactValue = (row: number) => unknown;

/** @param values null or undefined: the row has none */
export function columnOf(name: string, values: readonly unknown[], exact?: ExactValue): Column {
  const first = values.find((value) => value !== null && value !== undefined);
  return typedColumn(name, first, values, exact) ?? jsonColumn(name, values);
}

function typedColumn(
  name: string,
  first: unknown,
  values: readonly unknown[],
  exact?: ExactValue,
): Column | null {
  switch (typeof first) {
    case 'number':
      return numberColumn(name, values, exact);
    case 'string':
      return stringColumn(name, values);
    case 'boolean':
      return boolColumn(name, values);
    default:
      return Array.isArray(first) ? listColumn(name, first.length, values) : null;
  }
}

export function jsonColumn(name: string, values: readonly unknown[]): Column {
  const nulls = new Nulls(values.length);
  const json = values.map((value, row) => {
    if (value === null || value === undefined) nulls.add(row);
    return value ?? null;
  });
  return { name, type: 'json', values: json, ...nulls.found };
}

export function stringColumn(name: string, values: readonly unknown[]): Column | null {
  const nulls = new Nulls(values.length);
  const texts = new Array<string | null>(values.length).fill(null);
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row];
    if (typeof value === 'string') texts[row] = value;
    else if (value === null || value === undefined) nulls.add(row);
    else return null;
  }
  return { name, type: 'string', values: texts, ...nulls.found };
}

function boolColumn(name: string, values: readonly unknown[]): Column | null {
  const nulls = new Nulls(values.length);
  const bits = new Uint8Array(values.length);
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row];
    if (typeof value === 'boolean') bits[row] = value ? 1 : 0;
    else if (value === null || value === undefined) nulls.add(row);
    else return null;
  }
  return { name, type: 'bool', values: bits, ...nulls.found };
}

function numberColumn(name: string, values: readonly unknown[], exact?: ExactValue): Column | null {
  const nulls = new Nulls(values.length);
  const numbers = new Float64Array(values.length);
  let unsafe = false;
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row];
    if (typeof value === 'number') {
      numbers[row] = value;
      if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER) unsafe = true;
    } else if (value === null || value === undefined) nulls.add(row);
    else return null;
  }
  const large = unsafe && exact ? largeIntegers(name, values, exact, nulls) : null;
  return large ?? { name, type: 'float64', values: numbers, ...nulls.found };
}

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);
const UINT64_MAX = 2n ** 64n - 1n;

/** Where all are integers of 64 bits: ids, say, of which a double would make other ids. */
function largeIntegers(
  name: string,
  values: readonly unknown[],
  exact: ExactValue,
  nulls: Nulls,
): Column | null {
  const integers: bigint[] = [];
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row] ?? 0;
    if (Number.isSafeInteger(value)) integers.push(BigInt(value as number));
    else {
      const large = exact(row);
      if (typeof large !== 'bigint') return null;
      integers.push(large);
    }
  }
  const within = (least: bigint, most: bigint): boolean =>
    integers.every((integer) => integer >= least && integer <= most);
  if (within(INT64_MIN, INT64_MAX))
    return { name, type: 'int64', values: BigInt64Array.from(integers), ...nulls.found };
  if (within(0n, UINT64_MAX))
    return { name, type: 'uint64', values: BigUint64Array.from(integers), ...nulls.found };
  return null;
}

/** Lists of one length, of numbers or of such lists. */
function listColumn(name: string, length: number, values: readonly unknown[]): Column | null {
  const nulls = new Nulls(values.length);
  const offsets = new Uint32Array(values.length + 1);
  let end = 0;
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row];
    if (Array.isArray(value)) {
      if (value.length !== length) return null;
      end += length;
    } else if (value === null || value === undefined) nulls.add(row);
    else return null;
    offsets[row + 1] = end;
  }
  const lists = values as ReadonlyArray<unknown[] | null | undefined>;
  const child = flatNumbers(lists, end) ?? innerLists(lists);
  return child && { name, type: 'list', offsets, child, ...nulls.found };
}

function flatNumbers(lists: ReadonlyArray<unknown[] | null | undefined>, total: number): Column | null {
  const numbers = new Float64Array(total);
  let end = 0;
  for (const list of lists) {
    if (!list) continue;
    for (const value of list) {
      if (typeof value !== 'number') return null;
      numbers[end] = value;
      end += 1;
    }
  }
  return { name: 'item', type: 'float64', values: numbers };
}

function innerLists(lists: ReadonlyArray<unknown[] | null | undefined>): Column | null {
  const inner = lists.flatMap((list) => list ?? []);
  if (!inner.every(Array.isArray)) return null;
  return listColumn('item', (inner[0] as unknown[]).length, inner);
}

/** Made with the first row that has no value. */
export class Nulls {
  #marks: Uint8Array | undefined;
  readonly #rows: number;

  constructor(rows: number) {
    this.#rows = rows;
  }

  add(row: number): void {
    this.#marks ??= new Uint8Array(this.#rows);
    this.#marks[row] = 1;
  }

  get found(): { nulls?: Uint8Array } {
    return this.#marks ? { nulls: this.#marks } : {};
  }
}

/** @param given 1 where the row has a value */
export function nullsOf(given: Uint8Array): { nulls?: Uint8Array } {
  const nulls = new Nulls(given.length);
  for (let row = given.indexOf(0); row !== -1; row = given.indexOf(0, row + 1)) nulls.add(row);
  return nulls.found;
}
