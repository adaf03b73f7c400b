/** Elements as Parquet's PLAIN encoding has them: numbers as they lie in memory, texts with a length before each. */
import type { NumericValues } from '../columns.js';
import type { BytesVector, NumberVector, Vector } from './vectors.js';

/** Of elements [from, to) that have a value. */
export function plainValues(vector: Vector, from: number, to: number): Uint8Array {
  if (vector.kind === 'number') return plainNumbers(vector, from, to);
  if (vector.kind === 'text' || vector.kind === 'binary') return plainBytes(vector, from, to);
  throw new Error(`a ${vector.kind} is no element`);
}

function plainNumbers({ type, values, valid }: NumberVector, from: number, to: number): Uint8Array {
  const present = presentOf(values.subarray(from, to), valid?.subarray(from, to));
  if (type === 'bool') return packedBits(present as Uint8Array);
  const narrow = present.BYTES_PER_ELEMENT < 4;
  const physical = narrow ? Int32Array.from(present as Uint16Array) : present;
  return new Uint8Array(physical.buffer, physical.byteOffset, physical.byteLength);
}

function presentOf(values: NumericValues, valid: Uint8Array | undefined): NumericValues {
  if (!valid?.includes(0)) return values;
  const kept = values.slice() as { [index: number]: number | bigint };
  let count = 0;
  for (let i = 0; i < values.length; i++) if (valid[i] !== 0) kept[count++] = values[i] as number | bigint;
  return (kept as NumericValues).subarray(0, count);
}

export function packedBits(bools: Uint8Array): Uint8Array {
  const bits = new Uint8Array(Math.ceil(bools.length / 8));
  for (let i = 0; i < bools.length; i++)
    if (bools[i] !== 0) bits[i >>> 3] = (bits[i >>> 3] as number) | (1 << (i & 7));
  return bits;
}

function plainBytes({ offsets, data, valid }: BytesVector, from: number, to: number): Uint8Array {
  const out = Buffer.allocUnsafe((to - from) * 4 + (offsets[to] as number) - (offsets[from] as number));
  let at = 0;
  for (let i = from; i < to; i++) {
    if (valid?.[i] === 0) continue;
    const first = offsets[i] as number;
    const end = offsets[i + 1] as number;
    at = out.writeUInt32LE(end - first, at);
    out.set(data.subarray(first, end), at);
    at += end - first;
  }
  return out.subarray(0, at);
}

/** Least and greatest element with a value; null: none, or a type whose order readers disagree on. NaN is left out. */
export function extremes(
  vector: Vector,
  from: number,
  to: number,
): { min: number | bigint; max: number | bigint } | null {
  if (vector.kind !== 'number' || !ORDERED.has(vector.type)) return null;
  const { values, valid } = vector;
  if (values instanceof BigInt64Array) return bigExtremes(values, valid, from, to);
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (let i = from; i < to; i++) {
    const value = values[i] as number;
    if (valid?.[i] === 0) continue;
    // Neither is true of NaN.
    if (value < min) min = value;
    if (value > max) max = value;
  }
  if (min > max) return null;
  // Zeros of both signs may stand behind either bound.
  return { min: min === 0 ? -0 : min, max: max === 0 ? 0 : max };
}

/** By their upper halves: a BigInt is made only of what may be a bound. */
function bigExtremes(
  values: BigInt64Array,
  valid: Uint8Array | null,
  from: number,
  to: number,
): { min: bigint; max: bigint } | null {
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  let least = -1;
  let greatest = -1;
  for (let i = from; i < to; i++) {
    if (valid?.[i] === 0) continue;
    if (least < 0) {
      least = i;
      greatest = i;
    } else if (isLess(halves, i, least)) least = i;
    else if (isLess(halves, greatest, i)) greatest = i;
  }
  return least < 0 ? null : { min: values[least] as bigint, max: values[greatest] as bigint };
}

function isLess(halves: Int32Array, a: number, b: number): boolean {
  const high = (halves[2 * a + 1] as number) - (halves[2 * b + 1] as number);
  return high !== 0 ? high < 0 : (halves[2 * a] as number) >>> 0 < (halves[2 * b] as number) >>> 0;
}

const ORDERED: ReadonlySet<string> = new Set(['int8', 'int16', 'int32', 'int64', 'float32', 'float64']);
