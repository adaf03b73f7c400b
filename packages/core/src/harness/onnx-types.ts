/**
 * Datatypes of ONNX Runtime and their names in the Open Inference Protocol, and raw bytes as the typed arrays that
 * the runtime takes. No import of the runtime, so that it can be tested and used anywhere.
 */
import type { Datatype } from '@remuda/schemas';

const PROTOCOL_NAME: Readonly<Record<string, Datatype>> = {
  bool: 'BOOL',
  uint8: 'UINT8',
  uint16: 'UINT16',
  uint32: 'UINT32',
  uint64: 'UINT64',
  int8: 'INT8',
  int16: 'INT16',
  int32: 'INT32',
  int64: 'INT64',
  float16: 'FP16',
  float32: 'FP32',
  float64: 'FP64',
  string: 'BYTES',
};

/** The protocol's name of a runtime datatype; undefined for those it has no name for (uint4, int4). */
export function protocolDatatype(runtimeName: string): Datatype | undefined {
  return PROTOCOL_NAME[runtimeName];
}

const RUNTIME_NAME = Object.fromEntries(
  Object.entries(PROTOCOL_NAME).map(([runtime, protocol]) => [protocol, runtime]),
) as Readonly<Record<Datatype, string>>;

export function runtimeDatatype(datatype: Datatype): string {
  return RUNTIME_NAME[datatype];
}

/** Element types of onnx.proto that ONNX Runtime's Node binding cannot carry, by number: it names them no better. */
export const UNSUPPORTED_ELEMENT: Readonly<Record<string, string>> = {
  '14': 'complex64',
  '15': 'complex128',
  '16': 'bfloat16',
  '17': 'float8e4m3fn',
  '18': 'float8e4m3fnuz',
  '19': 'float8e5m2',
  '20': 'float8e5m2fnuz',
};

export type NumericArray =
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Float32Array
  | Float64Array;

interface NumericArrayConstructor {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): NumericArray;
}

const ARRAY: Readonly<Record<Exclude<Datatype, 'BYTES'>, NumericArrayConstructor>> = {
  BOOL: Uint8Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP16: Uint16Array,
  FP32: Float32Array,
  FP64: Float64Array,
};

/** Bytes as elements: a view where they lie aligned, else a copy. FP16 stays as its 16 bits. */
export function asElements(datatype: Exclude<Datatype, 'BYTES'>, bytes: Uint8Array): NumericArray {
  const Elements = ARRAY[datatype];
  const width = Elements.BYTES_PER_ELEMENT;
  // Not slice(): that of a Buffer is a view.
  const source = bytes.byteOffset % width === 0 ? bytes : new Uint8Array(bytes);
  return new Elements(source.buffer, source.byteOffset, bytes.byteLength / width);
}
