/** Columns of one part in the type that the whole file has: see commonType(). */
import type { NumericType } from '../columns.js';
import { NUMERIC_ARRAY } from '../numeric-types.js';
import type { FieldType } from './field-types.js';
import { bytesVector, entryOf, isValid, type Vector } from './vectors.js';

/** The vector itself where it is of that type. */
export function castVector(vector: Vector, type: FieldType): Vector {
  if (vector.kind === 'none') return emptyOf(type, vector.length);
  if (type.kind === 'number') return castNumbers(vector, type.type);
  if (type.kind === 'list') {
    if (vector.kind !== 'list') throw new Error(`no list can be made of ${vector.kind}`);
    return { ...vector, child: castVector(vector.child, type.of) };
  }
  if (type.kind === 'none' || vector.kind === type.kind) return vector;
  if (vector.kind === 'text') return { ...vector, kind: 'binary' };
  return bytesVector(type.kind, textsOf(vector));
}

/** All entries without a value. */
function emptyOf(type: FieldType, length: number): Vector {
  const valid = new Uint8Array(length);
  switch (type.kind) {
    case 'none':
      return { kind: 'none', length, valid: null };
    case 'number':
      return {
        kind: 'number',
        type: type.type,
        length,
        valid,
        values: new NUMERIC_ARRAY[type.type](length),
      };
    case 'list':
      return {
        kind: 'list',
        length,
        valid,
        offsets: new Uint32Array(length + 1),
        child: emptyOf(type.of, 0),
      };
    default:
      return {
        kind: type.kind,
        length,
        valid,
        offsets: new Uint32Array(length + 1),
        data: new Uint8Array(0),
      };
  }
}

function castNumbers(vector: Vector, type: NumericType): Vector {
  if (vector.kind !== 'number') throw new Error(`no ${type} can be made of ${vector.kind}`);
  if (vector.type === type) return vector;
  const values = new NUMERIC_ARRAY[type](vector.length) as { [index: number]: number | bigint };
  const big = type === 'int64' || type === 'uint64';
  for (let i = 0; i < vector.length; i++) {
    const value = vector.values[i] as number | bigint;
    values[i] = big ? BigInt(value) : Number(value);
  }
  return { ...vector, type, values: values as never };
}

/** Texts as they are, anything else as JSON. */
function textsOf(vector: Vector): (string | null)[] {
  return Array.from({ length: vector.length }, (_, i) => {
    if (!isValid(vector, i)) return null;
    const entry = entryOf(vector, i);
    return typeof entry === 'string' ? entry : JSON.stringify(entry);
  });
}
