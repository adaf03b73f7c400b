/**
 * The datatypes of the Open Inference Protocol (v2, "Tensor Data Types"): names, width in bytes, and integer
 * ranges. BYTES elements are length-prefixed (uint32 little-endian) in the binary layout.
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
