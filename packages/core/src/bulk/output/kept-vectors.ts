/**
 * Columns of the input that are kept, as columns of the output: nulls stay, JSON gets the type that its values tell, and so
 * do the numbers of a format without types.
 */
import type { Column, NumericValues } from '../columns.js';
import { NUMERIC_ARRAY } from '../numeric-types.js';
import { bytesVector, noValues, type Vector, validOf } from './vectors.js';

/** @param byValues the input does not say its type: numbers that are all whole are int64, which an id keeps its digits in */
export function columnVector(column: Column, length: number, byValues = false): Vector {
  const valid = validOf(length, column.nulls);
  if (valid && !valid.includes(1)) return noValues(length);
  const entry = <T>(values: readonly T[]): (T | null)[] =>
    valid ? values.map((value, i) => (valid[i] === 0 ? null : value)) : (values as T[]);
  switch (column.type) {
    case 'string':
      return orNone(bytesVector('text', entry(column.values)));
    case 'bytes':
      return orNone(bytesVector('binary', entry(column.values)));
    case 'json':
      return jsonVector(entry(column.values));
    case 'list':
      return listVector(column, length, valid, byValues);
    default:
      return numberVector(column, length, valid, byValues);
  }
}

function numberVector(
  { type, values }: Extract<Column, { values: NumericValues }>,
  length: number,
  valid: Uint8Array | null,
  byValues: boolean,
): Vector {
  const integers = byValues && values instanceof Float64Array ? wholeNumbers(values, valid) : null;
  return integers
    ? { kind: 'number', type: 'int64', length, valid, values: integers }
    : { kind: 'number', type, length, valid, values };
}

/** null: some are none, or have lost digits. Two halves for each number: BigInts would cost five times as much. */
function wholeNumbers(values: Float64Array, valid: Uint8Array | null): BigInt64Array | null {
  const halves = new Uint32Array(values.length * 2);
  for (let i = 0; i < values.length; i++) {
    if (valid?.[i] === 0) continue;
    const value = values[i] as number;
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) return null;
    halves[2 * i] = value >>> 0;
    halves[2 * i + 1] = Math.floor(value / 2 ** 32);
  }
  return new BigInt64Array(halves.buffer);
}

function orNone(vector: Vector): Vector {
  return vector.valid && !vector.valid.includes(1) ? noValues(vector.length) : vector;
}

/** Lists without a value are empty ones: what the source holds in their place is left out. */
function listVector(
  { offsets, child }: Extract<Column, { type: 'list' }>,
  length: number,
  valid: Uint8Array | null,
  byValues: boolean,
): Vector {
  const entries = columnVector(child, offsets[length] as number, byValues);
  const hidden = valid?.some((mark, i) => mark === 0 && offsets[i] !== offsets[i + 1]);
  if (!hidden) return { kind: 'list', length, valid, offsets, child: entries };
  return compactList(offsets, entries, length, valid as Uint8Array);
}

function compactList(offsets: Uint32Array, child: Vector, length: number, valid: Uint8Array): Vector {
  const wanted: number[] = [];
  const ends = new Uint32Array(length + 1);
  for (let i = 0; i < length; i++) {
    if (valid[i] === 1)
      for (let at = offsets[i] as number; at < (offsets[i + 1] as number); at++) wanted.push(at);
    ends[i + 1] = wanted.length;
  }
  return { kind: 'list', length, valid, offsets: ends, child: pick(child, wanted) };
}

function pick(vector: Vector, wanted: readonly number[]): Vector {
  const { length } = wanted;
  const valid = vector.valid && Uint8Array.from(wanted, (at) => vector.valid?.[at] ?? 1);
  switch (vector.kind) {
    case 'none':
      return noValues(length);
    case 'number': {
      const values = new NUMERIC_ARRAY[vector.type](length) as { [index: number]: number | bigint };
      for (let i = 0; i < length; i++) values[i] = vector.values[wanted[i] as number] as number | bigint;
      return { ...vector, length, valid, values: values as never };
    }
    case 'list': {
      const inner: number[] = [];
      const offsets = new Uint32Array(length + 1);
      for (const [i, at] of wanted.entries()) {
        for (let j = vector.offsets[at] as number; j < (vector.offsets[at + 1] as number); j++) inner.push(j);
        offsets[i + 1] = inner.length;
      }
      return { ...vector, length, valid, offsets, child: pick(vector.child, inner) };
    }
    default: {
      const entries = wanted.map((at) =>
        vector.valid?.[at] === 0 ? null : vector.data.subarray(vector.offsets[at], vector.offsets[at + 1]),
      );
      return bytesVector(vector.kind, entries);
    }
  }
}

/** JSON values all of one simple kind have a type; anything else is text, and JSON in it where it is no string. */
function jsonVector(values: readonly unknown[]): Vector {
  const { length } = values;
  const present = values.filter((value) => value !== null && value !== undefined);
  if (present.length === 0) return noValues(length);
  const valid =
    present.length === length
      ? null
      : Uint8Array.from(values, (value) => (value === null || value === undefined ? 0 : 1));
  if (present.every((value) => typeof value === 'boolean'))
    return { kind: 'number', type: 'bool', length, valid, values: Uint8Array.from(values, Number) };
  if (present.every((value) => Number.isSafeInteger(value) && !Object.is(value, -0)))
    return {
      kind: 'number',
      type: 'int64',
      length,
      valid,
      values: BigInt64Array.from(values, (value) => BigInt((value as number | null | undefined) ?? 0)),
    };
  if (present.every((value) => typeof value === 'number'))
    return {
      kind: 'number',
      type: 'float64',
      length,
      valid,
      values: Float64Array.from(values, (value) => (value as number | null | undefined) ?? 0),
    };
  const texts = values.map((value) =>
    typeof value === 'string' || value === null || value === undefined ? value : JSON.stringify(value),
  );
  return bytesVector('text', texts);
}
