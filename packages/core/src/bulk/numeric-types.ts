/** The numbers that columns hold: as arrays in memory, and as tensors. */
import type { Datatype } from '@remuda/schemas';
import type { NumericType, NumericValues } from './columns.js';

interface NumericArrayConstructor {
  readonly BYTES_PER_ELEMENT: number;
  new (length: number): NumericValues;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): NumericValues;
}

export const NUMERIC_ARRAY: Readonly<Record<NumericType, NumericArrayConstructor>> = {
  bool: Uint8Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
};

export const DATATYPE_OF: Readonly<Record<NumericType, Exclude<Datatype, 'BYTES'>>> = {
  bool: 'BOOL',
  int8: 'INT8',
  int16: 'INT16',
  int32: 'INT32',
  int64: 'INT64',
  uint8: 'UINT8',
  uint16: 'UINT16',
  uint32: 'UINT32',
  uint64: 'UINT64',
  float32: 'FP32',
  float64: 'FP64',
};
