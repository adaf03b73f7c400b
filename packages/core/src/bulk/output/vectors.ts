/**
 * Columns of an output as few typed arrays, lists and texts too, so that a chunk of a million rows is a few objects.
 * What every columnar format is written from; parquet-pages.ts and arrow-encoder.ts take them from here.
 */
import type { NumericType, NumericValues } from '../columns.js';
import { NUMERIC_ARRAY } from '../numeric-types.js';
import { type FieldType, list, NONE, number } from './field-types.js';

interface VectorBase {
  length: number;
  /** 0 where there is no value; null: all have one. Without a value the entry is zero, or empty. */
  valid: Uint8Array | null;
}

export type Vector =
  | (VectorBase & { kind: 'none' })
  | (VectorBase & { kind: 'number'; type: NumericType; values: NumericValues })
  /** Entry i is bytes [offsets[i], offsets[i + 1]) of data. */
  | (VectorBase & { kind: 'text' | 'binary'; offsets: Uint32Array; data: Uint8Array })
  /** Entry i is entries [offsets[i], offsets[i + 1]) of the child. */
  | (VectorBase & { kind: 'list'; offsets: Uint32Array; child: Vector });

export type BytesVector = Extract<Vector, { kind: 'text' | 'binary' }>;
export type NumberVector = Extract<Vector, { kind: 'number' }>;
export type ListVector = Extract<Vector, { kind: 'list' }>;

export function typeOf(vector: Vector): FieldType {
  if (vector.kind === 'number') return number(vector.type);
  if (vector.kind === 'list') return list(typeOf(vector.child));
  return vector.kind === 'none' ? NONE : { kind: vector.kind };
}

export function noValues(length: number): Vector {
  return { kind: 'none', length, valid: null };
}

export function isValid(vector: Vector, i: number): boolean {
  return vector.kind !== 'none' && vector.valid?.[i] !== 0;
}

/** Marks of a column's nulls (1: none) as marks of values, joined with those of rows that failed. */
export function validOf(
  length: number,
  nulls: Uint8Array | undefined,
  failed?: Uint8Array | null,
): Uint8Array | null {
  if (!nulls?.includes(1) && !failed?.includes(1)) return null;
  const valid = new Uint8Array(length).fill(1);
  for (let i = 0; i < length; i++) if (nulls?.[i] === 1 || failed?.[i] === 1) valid[i] = 0;
  return valid;
}

/** Texts (as UTF-8) or bytes; null and undefined are no value. */
export function bytesVector(
  kind: 'text' | 'binary',
  entries: readonly (string | Uint8Array | null | undefined)[],
): BytesVector {
  const { length } = entries;
  const offsets = new Uint32Array(length + 1);
  let valid: Uint8Array | null = null;
  let end = 0;
  for (let i = 0; i < length; i++) {
    const entry = entries[i];
    if (entry === null || entry === undefined) {
      valid ??= new Uint8Array(length).fill(1);
      valid[i] = 0;
    } else end += typeof entry === 'string' ? Buffer.byteLength(entry, 'utf8') : entry.byteLength;
    offsets[i + 1] = end;
  }
  const data = Buffer.allocUnsafe(end);
  for (let i = 0; i < length; i++) {
    const entry = entries[i];
    if (typeof entry === 'string') data.write(entry, offsets[i] as number, 'utf8');
    else if (entry) data.set(entry, offsets[i]);
  }
  return { kind, length, valid, offsets, data };
}

/** Bytes that entries [from, to) take: what a group of rows is measured by. Knows no marks of missing values. */
export function sizeOf(vector: Vector, from: number, to: number): number {
  if (vector.kind === 'none') return 0;
  if (vector.kind === 'number') return (to - from) * NUMERIC_ARRAY[vector.type].BYTES_PER_ELEMENT;
  const first = vector.offsets[from] as number;
  const end = vector.offsets[to] as number;
  const inner = vector.kind === 'list' ? sizeOf(vector.child, first, end) : end - first;
  return (to - from) * 4 + inner;
}

/** One entry as JSON has it: whole numbers beyond 2^53, NaN and infinities as texts, bytes in base64. */
export function entryOf(vector: Vector, i: number): unknown {
  if (!isValid(vector, i)) return null;
  switch (vector.kind) {
    case 'none':
      return null;
    case 'number':
      return jsonNumber(vector.values[i] as number | bigint, vector.type);
    case 'list': {
      const [from = 0, to = 0] = vector.offsets.subarray(i, i + 2);
      return Array.from({ length: to - from }, (_, at) => entryOf(vector.child, from + at));
    }
    default:
      return bytesOf(vector, i).toString(vector.kind === 'text' ? 'utf8' : 'base64');
  }
}

export function bytesOf({ data, offsets }: BytesVector, i: number): Buffer {
  const from = offsets[i] as number;
  return Buffer.from(data.buffer, data.byteOffset + from, (offsets[i + 1] as number) - from);
}

export function jsonNumber(value: number | bigint, type: NumericType): number | string | boolean {
  if (type === 'bool') return value === 1;
  if (typeof value === 'bigint')
    return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  return Number.isFinite(value) ? value : String(value);
}
