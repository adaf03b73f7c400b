/**
 * Numbers of a tensor, and the loops that fill it. What does not fit the datatype is never cut off: the loop says which
 * row it was and goes on. Integers are written and read back, which finds fractions, overflows and NaN in one comparison.
 */
import { type Datatype, ELEMENT_BYTES, INTEGER_RANGE, toHalfBits } from '@remuda/schemas';
import type { NumericType, NumericValues } from '../columns.js';
import { DATATYPE_OF } from '../numeric-types.js';

type NumberDatatype = Exclude<Datatype, 'BYTES'>;
type Small = Exclude<NumericValues, BigInt64Array | BigUint64Array>;

/** Told the row of the piece whose value does not fit. */
export type Unfit = (row: number) => void;

export interface NumberTarget {
  readonly datatype: NumberDatatype;
  /** Little-endian elements. */
  readonly bytes: Uint8Array;
  /** False: it does not fit. */
  put(index: number, value: number): boolean;
  /** Of a 64-bit integer; false: it does not fit. */
  putBig(index: number, value: bigint): boolean;
}

const HALF_LIMIT = 65_520;

/** Rows that are filled at a time, column by column: what is written then stays in the nearest cache. */
export const TILE_ROWS = 256;

export function numberTarget(datatype: NumberDatatype, count: number): NumberTarget {
  return MAKERS[datatype](datatype, count);
}

const MAKERS: Readonly<Record<NumberDatatype, (datatype: NumberDatatype, count: number) => Target>> = {
  BOOL: (datatype, count) => new TruthTarget(datatype, new Uint8Array(count)),
  UINT8: (datatype, count) => new IntegerTarget(datatype, new Uint8Array(count)),
  UINT16: (datatype, count) => new IntegerTarget(datatype, new Uint16Array(count)),
  UINT32: (datatype, count) => new IntegerTarget(datatype, new Uint32Array(count)),
  INT8: (datatype, count) => new IntegerTarget(datatype, new Int8Array(count)),
  INT16: (datatype, count) => new IntegerTarget(datatype, new Int16Array(count)),
  INT32: (datatype, count) => new IntegerTarget(datatype, new Int32Array(count)),
  UINT64: (datatype, count) => new LongTarget(datatype, new Uint32Array(count * 2)),
  INT64: (datatype, count) => new LongTarget(datatype, new Uint32Array(count * 2)),
  FP16: (datatype, count) => new HalfTarget(datatype, new Uint16Array(count)),
  FP32: (datatype, count) => new FloatTarget(datatype, new Float32Array(count)),
  FP64: (datatype, count) => new FloatTarget(datatype, new Float64Array(count)),
};

abstract class Target implements NumberTarget {
  readonly bytes: Uint8Array;

  constructor(
    readonly datatype: NumberDatatype,
    readonly array: Small,
  ) {
    this.bytes = new Uint8Array(array.buffer);
  }

  abstract put(index: number, value: number): boolean;

  putBig(index: number, value: bigint): boolean {
    return this.put(index, Number(value));
  }
}

class IntegerTarget extends Target {
  put(index: number, value: number): boolean {
    this.array[index] = value;
    return this.array[index] === value;
  }
}

class TruthTarget extends Target {
  put(index: number, value: number): boolean {
    this.array[index] = value === 1 ? 1 : 0;
    return value === 1 || value === 0;
  }
}

class FloatTarget extends Target {
  put(index: number, value: number): boolean {
    this.array[index] = value;
    return Number.isFinite(this.array[index] as number) || !Number.isFinite(value);
  }
}

class HalfTarget extends Target {
  put(index: number, value: number): boolean {
    this.array[index] = toHalfBits(value);
    return !(Math.abs(value) >= HALF_LIMIT) || !Number.isFinite(value);
  }
}

/** In two halves of 32 bits: a BigInt for each value would cost many times as much. */
class LongTarget extends Target {
  readonly #low: number;
  /** The first that is too large. */
  readonly #end: number;

  constructor(datatype: NumberDatatype, array: Uint32Array) {
    super(datatype, array);
    this.#low = datatype === 'INT64' ? -(2 ** 63) : 0;
    this.#end = datatype === 'INT64' ? 2 ** 63 : 2 ** 64;
  }

  put(index: number, value: number): boolean {
    if (!Number.isInteger(value) || value < this.#low || value >= this.#end) return false;
    this.array[index * 2] = value;
    this.array[index * 2 + 1] = Math.floor(value / 2 ** 32);
    return true;
  }

  override putBig(index: number, value: bigint): boolean {
    const [low, high] = INTEGER_RANGE[this.datatype] as readonly [bigint, bigint];
    if (value < low || value > high) return false;
    const bits = BigInt.asUintN(64, value);
    this.array[index * 2] = Number(bits & 0xffffffffn);
    this.array[index * 2 + 1] = Number(bits >> 32n);
    return true;
  }
}

/**
 * Values [from, from + count) of a column, the i-th to element `at + i * stride`.
 * @param unfit told i for each value that does not fit
 */
export function fillNumbers(
  target: NumberTarget,
  type: NumericType,
  values: NumericValues,
  place: { from: number; count: number; at: number; stride: number },
  unfit: Unfit,
): void {
  const { from, count, at, stride } = place;
  const { array } = target as Target;
  if (DATATYPE_OF[type] === target.datatype) {
    if (stride === 1) copyRun(target, type, values, from, count, at);
    else if (type === 'int64' || type === 'uint64') spreadLongs(array as Uint32Array, wordsOf(values), place);
    else spread(array, values as Small, place);
  } else if (values instanceof Float64Array && target.datatype === 'FP32') {
    narrowFloats(array as Float32Array, values, place, unfit);
  } else if (type === 'int64' || type === 'uint64') {
    convertLongs(target, type === 'int64', wordsOf(values), place, unfit);
  } else {
    convert(target, values as Small, place, unfit);
  }
}

interface Place {
  from: number;
  count: number;
  at: number;
  stride: number;
}

function copyRun(
  target: NumberTarget,
  type: NumericType,
  values: NumericValues,
  from: number,
  count: number,
  at: number,
): void {
  const width = ELEMENT_BYTES[DATATYPE_OF[type]];
  const source = new Uint8Array(values.buffer, values.byteOffset + from * width, count * width);
  target.bytes.set(source, at * width);
}

function spread(array: Small, values: Small, { from, count, at, stride }: Place): void {
  for (let i = 0, o = at; i < count; i++, o += stride) array[o] = values[from + i] as number;
}

function spreadLongs(array: Uint32Array, words: Uint32Array, { from, count, at, stride }: Place): void {
  for (let i = 0, w = from * 2, o = at * 2; i < count; i++, w += 2, o += stride * 2) {
    array[o] = words[w] as number;
    array[o + 1] = words[w + 1] as number;
  }
}

function narrowFloats(
  array: Float32Array,
  values: Float64Array,
  { from, count, at, stride }: Place,
  unfit: Unfit,
): void {
  for (let i = 0, o = at; i < count; i++, o += stride) {
    const value = values[from + i] as number;
    array[o] = value;
    const written = array[o] as number;
    // Not a number only where it is infinite: then it must have been before.
    if (written - written !== 0 && value - value === 0) unfit(i);
  }
}

function convert(
  target: NumberTarget,
  values: Small,
  { from, count, at, stride }: Place,
  unfit: Unfit,
): void {
  for (let i = 0, o = at; i < count; i++, o += stride) {
    if (!target.put(o, values[from + i] as number)) unfit(i);
  }
}

function convertLongs(
  target: NumberTarget,
  signed: boolean,
  words: Uint32Array,
  { from, count, at, stride }: Place,
  unfit: Unfit,
): void {
  const isLong = target.datatype === 'INT64' || target.datatype === 'UINT64';
  const { array } = target as Target;
  for (let i = 0, w = from * 2, o = at; i < count; i++, w += 2, o += stride) {
    const low = words[w] as number;
    const high = words[w + 1] as number;
    if (isLong) {
      // Of the other kind of sign: the same bits, where the topmost is not set.
      array[o * 2] = low;
      array[o * 2 + 1] = high;
      if (high >= 2 ** 31) unfit(i);
    } else if (!target.put(o, (signed ? high | 0 : high) * 2 ** 32 + low)) unfit(i);
  }
}

function wordsOf({ buffer, byteOffset, length }: NumericValues): Uint32Array {
  return new Uint32Array(buffer, byteOffset, length * 2);
}

/** "a whole number from 0 to 255 (UINT8)" */
export function rangeText(datatype: NumberDatatype): string {
  const range = INTEGER_RANGE[datatype];
  if (range) return `a whole number from ${range[0]} to ${range[1]} (${datatype})`;
  if (datatype === 'BOOL') return 'true or false, 0 or 1 (BOOL)';
  const limit = datatype === 'FP16' ? ' up to ±65504' : datatype === 'FP32' ? ' up to ±3.4028235e38' : '';
  return `a number${limit} (${datatype})`;
}
