/**
 * Types of the columns of an output. Formats without types of their own (CSV, JSON lines) tell them by values, chunk by
 * chunk: so each part says its types, and the file has the narrowest that hold them all. Which one that is depends on
 * the rows alone, never on how they were cut into chunks.
 */
import type { NumericType } from '../columns.js';

export type FieldType =
  /** No row has a value. */
  | { kind: 'none' }
  | { kind: 'number'; type: NumericType }
  /** UTF-8. */
  | { kind: 'text' }
  | { kind: 'binary' }
  | { kind: 'list'; of: FieldType };

export const NONE: FieldType = { kind: 'none' };
export const TEXT: FieldType = { kind: 'text' };
export const BINARY: FieldType = { kind: 'binary' };

export function number(type: NumericType): FieldType {
  return { kind: 'number', type };
}

export function list(of: FieldType): FieldType {
  return { kind: 'list', of };
}

/** The narrowest type that holds the values of both; text where they have nothing else in common. */
export function commonType(a: FieldType, b: FieldType): FieldType {
  if (a.kind === 'none') return b;
  if (b.kind === 'none') return a;
  if (a.kind === 'list' && b.kind === 'list') return list(commonType(a.of, b.of));
  if (a.kind === 'number' && b.kind === 'number') return commonNumber(a.type, b.type);
  if (a.kind === 'binary' || b.kind === 'binary') return BINARY;
  return TEXT;
}

const SIGNED: readonly NumericType[] = ['int8', 'int16', 'int32', 'int64'];
const UNSIGNED: readonly NumericType[] = ['uint8', 'uint16', 'uint32', 'uint64'];

function commonNumber(a: NumericType, b: NumericType): FieldType {
  if (a === b) return number(a);
  if (a === 'bool' || b === 'bool') return TEXT;
  if (isFloat(a) || isFloat(b)) return number('float64');
  for (const family of [SIGNED, UNSIGNED])
    if (family.includes(a) && family.includes(b))
      return number(family[Math.max(family.indexOf(a), family.indexOf(b))] as NumericType);
  // Nothing holds both the largest uint64 and a negative number.
  return a === 'uint64' || b === 'uint64' ? TEXT : number('int64');
}

function isFloat(type: NumericType): boolean {
  return type === 'float32' || type === 'float64';
}

export function sameType(a: FieldType, b: FieldType): boolean {
  if (a.kind === 'list' && b.kind === 'list') return sameType(a.of, b.of);
  if (a.kind === 'number' && b.kind === 'number') return a.type === b.type;
  return a.kind === b.kind;
}

/** What a file must have where no row told more: nothing stands for text. */
export function settledType(type: FieldType): FieldType {
  if (type.kind === 'none') return TEXT;
  return type.kind === 'list' ? list(settledType(type.of)) : type;
}

const NUMBERS: readonly string[] = ['bool', ...SIGNED, ...UNSIGNED, 'float32', 'float64'];

/** As ColumnInfo names it ("float32", "list<float32>"); none where it is not known. */
export function fieldTypeOf(name: string | null | undefined): FieldType {
  const inner = /^list<(.*)>$/.exec(name ?? '')?.[1];
  if (inner !== undefined) return list(fieldTypeOf(inner));
  if (name === 'bytes') return BINARY;
  if (name === 'string') return TEXT;
  return NUMBERS.includes(name ?? '') ? number(name as NumericType) : NONE;
}
