/** Values as the type that a column was told to have: of CSV its texts, of JSONL its values. */
import type { BulkColumnType } from '@remuda/schemas';
import type { ReadSettings } from '../../chunk.js';
import type { Column, NumericType, NumericValues } from '../../columns.js';
import { NUMERIC_ARRAY } from '../../numeric-types.js';
import { columnOf, jsonColumn, Nulls, stringColumn } from './typed-column.js';

/** The row's value does not fit: it fails, alone. */
export type Misfit = (row: number, what: string) => void;

type IntegerType = 'int8' | 'int16' | 'int32' | 'uint8' | 'uint16' | 'uint32';

const RANGES: Readonly<Record<IntegerType, readonly [number, number]>> = {
  int8: [-128, 127],
  int16: [-32_768, 32_767],
  int32: [-2_147_483_648, 2_147_483_647],
  uint8: [0, 255],
  uint16: [0, 65_535],
  uint32: [0, 4_294_967_295],
};
const RANGES_64 = {
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
} as const;

/** Of its own alone: a column may be called "constructor". */
export function typeToldFor(
  name: string,
  { types }: Pick<ReadSettings, 'types'>,
): BulkColumnType | undefined {
  return types && Object.hasOwn(types, name) ? types[name] : undefined;
}

/** @param values null or undefined: the row has none */
export function columnAs(
  name: string,
  type: BulkColumnType,
  values: readonly unknown[],
  misfit: Misfit,
): Column {
  if (type === 'json') return columnOf(name, fitting(values, jsonOf, type, misfit));
  if (type === 'string')
    return stringColumn(name, fitting(values, stringOf, type, misfit)) ?? jsonColumn(name, values);
  return numericAs(name, type, values, misfit);
}

function numericAs(name: string, type: NumericType, values: readonly unknown[], misfit: Misfit): Column {
  const nulls = new Nulls(values.length);
  const array = new NUMERIC_ARRAY[type](values.length) as Record<number, number | bigint> & NumericValues;
  const convert = CONVERTERS[type];
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row];
    const number = value === null || value === undefined ? undefined : convert(value);
    if (number !== undefined) array[row] = number;
    else {
      nulls.add(row);
      if (value !== null && value !== undefined) misfit(row, misfitOf(value, type));
    }
  }
  return { name, type, values: array, ...nulls.found };
}

function fitting<Value>(
  values: readonly unknown[],
  convert: (value: unknown) => Value | undefined,
  type: BulkColumnType,
  misfit: Misfit,
): Array<Value | null> {
  return values.map((value, row) => {
    if (value === null || value === undefined) return null;
    const fit = convert(value);
    if (fit === undefined) misfit(row, misfitOf(value, type));
    return fit ?? null;
  });
}

export function misfitOf(value: unknown, type: BulkColumnType): string {
  const range =
    type in RANGES
      ? RANGES[type as IntegerType]
      : type in RANGES_64
        ? RANGES_64[type as 'int64' | 'uint64']
        : null;
  const expected =
    range !== null ? `${type} (a whole number from ${range[0]} to ${range[1]})` : (EXPECTED[type] ?? type);
  return `${shown(value)} where ${expected} was expected`;
}

const EXPECTED: Partial<Record<BulkColumnType, string>> = {
  bool: 'bool (true, false, 1 or 0)',
  float32: 'a number (float32)',
  float64: 'a number (float64)',
  json: 'a JSON value',
};

/** A value as it is shown in a message: its beginning. */
export function shown(value: unknown): string {
  const text = typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

export const CONVERTERS: Readonly<Record<NumericType, (value: unknown) => number | bigint | undefined>> = {
  bool: boolOf,
  float32: floatOf,
  float64: floatOf,
  int8: (value) => integerOf(value, RANGES.int8),
  int16: (value) => integerOf(value, RANGES.int16),
  int32: (value) => integerOf(value, RANGES.int32),
  uint8: (value) => integerOf(value, RANGES.uint8),
  uint16: (value) => integerOf(value, RANGES.uint16),
  uint32: (value) => integerOf(value, RANGES.uint32),
  int64: (value) => largeOf(value, RANGES_64.int64),
  uint64: (value) => largeOf(value, RANGES_64.uint64),
};

const NAMED_NUMBERS: Readonly<Record<string, number>> = {
  nan: Number.NaN,
  inf: Number.POSITIVE_INFINITY,
  '+inf': Number.POSITIVE_INFINITY,
  '-inf': Number.NEGATIVE_INFINITY,
  infinity: Number.POSITIVE_INFINITY,
  '+infinity': Number.POSITIVE_INFINITY,
  '-infinity': Number.NEGATIVE_INFINITY,
};

function floatOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'string' ? numberOf(value) : undefined;
}

/** A text as a number in decimal, or undefined. */
export function numberOf(text: string): number | undefined {
  const value = Number(text);
  // Number() also takes 0x10, 0b1 and nothing but spaces.
  if (value === 0 && text.trim() === '') return undefined;
  if (!Number.isNaN(value)) return text.charCodeAt(0) === 48 && /^0[xob]/i.test(text) ? undefined : value;
  return NAMED_NUMBERS[text.trim().toLowerCase()];
}

function integerOf(value: unknown, [least, most]: readonly [number, number]): number | undefined {
  const number = floatOf(value);
  if (number === undefined || !Number.isInteger(number)) return undefined;
  return number >= least && number <= most ? number : undefined;
}

function largeOf(value: unknown, [least, most]: readonly [bigint, bigint]): bigint | undefined {
  const integer = bigintOf(value);
  return integer !== undefined && integer >= least && integer <= most ? integer : undefined;
}

function bigintOf(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value))
    return BigInt(value.trim().replace('+', ''));
  const number = floatOf(value);
  return Number.isSafeInteger(number) ? BigInt(number as number) : undefined;
}

function boolOf(value: unknown): number | undefined {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (value === 1 || value === 0) return value;
  if (typeof value !== 'string') return undefined;
  const text = value.trim().toLowerCase();
  if (text === 'true' || text === '1') return 1;
  return text === 'false' || text === '0' ? 0 : undefined;
}

function stringOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'bigint' ? String(value) : JSON.stringify(value);
}

function jsonOf(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}
