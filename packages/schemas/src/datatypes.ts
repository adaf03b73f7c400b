/**
 * The datatypes of the Open Inference Protocol (v2, "Tensor Data Types"): names, width in bytes, and how a number is
 * written little-endian. BYTES elements are length-prefixed (uint32 little-endian) in the binary layout.
 */
import * as z from 'zod';

export const DATATYPES = [
  'BOOL',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'FP16',
  'FP32',
  'FP64',
  'BYTES',
] as const;
export const Datatype = z.enum(DATATYPES).describe('A datatype of the Open Inference Protocol.');
export type Datatype = z.infer<typeof Datatype>;

/** Width of one element in bytes; 0 for BYTES, whose elements have lengths of their own. */
export const ELEMENT_BYTES: Readonly<Record<Datatype, number>> = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  FP32: 4,
  FP64: 8,
  BYTES: 0,
};

/** Inclusive integer ranges; floats and BYTES are absent. */
export const INTEGER_RANGE: Readonly<Partial<Record<Datatype, readonly [bigint, bigint]>>> = {
  UINT8: [0n, 255n],
  UINT16: [0n, 65_535n],
  UINT32: [0n, 4_294_967_295n],
  UINT64: [0n, 18_446_744_073_709_551_615n],
  INT8: [-128n, 127n],
  INT16: [-32_768n, 32_767n],
  INT32: [-2_147_483_648n, 2_147_483_647n],
  INT64: [-9_223_372_036_854_775_808n, 9_223_372_036_854_775_807n],
};

/** The number of elements a shape holds; 1 for a scalar ([]). */
export function elementCount(shape: readonly number[]): number {
  let count = 1;
  for (const dim of shape) count *= dim;
  return count;
}

const scratch = new DataView(new ArrayBuffer(4));

/** IEEE 754 binary16 bits of a number, rounded to nearest even; beyond 65,519.99 gives infinity. */
export function toHalfBits(value: number): number {
  scratch.setFloat32(0, value);
  const bits = scratch.getUint32(0);
  const sign = (bits >>> 16) & 0x8000;
  const exponent = (bits >>> 23) & 0xff;
  const mantissa = bits & 0x7fffff;
  if (exponent === 0xff) return sign | 0x7c00 | (mantissa ? 0x200 : 0);
  const unbiased = exponent - 127;
  if (unbiased > 15) return sign | 0x7c00;
  if (unbiased >= -14) {
    const half = ((unbiased + 15) << 10) | (mantissa >>> 13);
    return sign | (half + roundUp(mantissa & 0x1fff, 0x1000, half));
  }
  if (unbiased < -25) return sign;
  const shift = -unbiased - 14 + 13;
  const full = mantissa | 0x800000;
  const half = full >>> shift;
  return sign | (half + roundUp(full & ((1 << shift) - 1), 1 << (shift - 1), half));
}

function roundUp(rest: number, halfway: number, kept: number): number {
  return rest > halfway || (rest === halfway && (kept & 1) === 1) ? 1 : 0;
}

/** The number that IEEE 754 binary16 bits stand for. */
export function fromHalfBits(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 31) return mantissa ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}
