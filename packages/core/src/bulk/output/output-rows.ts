/**
 * The rows of one output of a chunk, checked against what the model promised: where each begins, of which shape it is.
 * What every format reads outputs through.
 */
import { ELEMENT_BYTES, elementCount, fromHalfBits, splitBytesElements } from '@remuda/schemas';
import { InferenceError } from '../../errors.js';
import { asElements } from '../../harness/onnx-types.js';
import type { ChunkResult, OutputColumn } from '../chunk.js';
import type { NumericType, NumericValues } from '../columns.js';
import type { NamedOutput } from './output-layout.js';

export type OutputElements =
  | { kind: 'number'; type: NumericType; values: NumericValues }
  | { kind: 'bytes'; values: Uint8Array[] };

export interface OutputRows {
  elements: OutputElements;
  /** The first element of each row; one more entry for the end. */
  starts: Float64Array;
  /** null: the row has failed. */
  shapeOf(row: number): readonly number[] | null;
  /** Of all rows; null: they differ. */
  shape: readonly number[] | null;
}

/** 1 for each row that has failed; null: none has. */
export function failedRows({ rows, failures }: ChunkResult): Uint8Array | null {
  if (failures.length === 0) return null;
  const failed = new Uint8Array(rows);
  for (const { index } of failures) failed[index] = 1;
  return failed;
}

/**
 * null: no row of the chunk has it.
 * @param exact whether all fixed axes must be as long as promised; else their number is enough, since models are known
 *   to give other lengths than they declare
 * @throws RemudaError output_mismatch
 */
export function outputRows(
  result: ChunkResult,
  output: NamedOutput,
  failed: Uint8Array | null,
  exact = output.scalar,
): OutputRows | null {
  const column = result.outputs.find(({ name }) => name === output.name);
  if (!column) {
    if (result.failures.length === result.rows) return null;
    throw new InferenceError(
      'output_mismatch',
      `output "${output.name}" is missing from the answers of rows ${place(result)}`,
    );
  }
  if (column.datatype !== output.datatype) mismatch(result, output, column.datatype);
  const { shape, shapes } = column;
  const shapeOf = (row: number): readonly number[] | null =>
    failed?.[row] === 1 ? null : (shape ?? shapes?.[row] ?? null);
  for (const one of shape ? [shape] : (shapes ?? []))
    if (one && !fits(one, output, exact)) mismatch(result, output, `[${one.join(', ')}]`);
  const starts = startsOf(column, result.rows);
  const elements = elementsOf(column);
  if (elements.values.length !== starts.at(-1))
    mismatch(result, output, `${elements.values.length} elements in place of ${starts.at(-1)}`);
  return { elements, starts, shapeOf, shape };
}

function fits(shape: readonly number[], { rowShape }: NamedOutput, exact: boolean): boolean {
  if (shape.length !== rowShape.length) return false;
  return !exact || rowShape.every((dim, axis) => dim === null || dim === shape[axis]);
}

function mismatch(result: ChunkResult, output: NamedOutput, received: string): never {
  const promised = `${output.datatype} [${output.rowShape.map((dim) => dim ?? '?').join(', ')}]`;
  throw new InferenceError(
    'output_mismatch',
    `output "${output.name}" of rows ${place(result)} is ${received}, not the ${promised} a row that the model's signature promises`,
  );
}

function place({ firstRow, rows }: ChunkResult): string {
  return `${firstRow} to ${firstRow + rows - 1}`;
}

function startsOf({ shape, shapes }: OutputColumn, rows: number): Float64Array {
  const starts = new Float64Array(rows + 1);
  const each = shape && elementCount(shape);
  for (let i = 0; i < rows; i++) {
    const own = shapes?.[i];
    starts[i + 1] = (starts[i] as number) + (each ?? (own ? elementCount(own) : 0));
  }
  return starts;
}

const NUMERIC = {
  BOOL: 'bool',
  UINT8: 'uint8',
  UINT16: 'uint16',
  UINT32: 'uint32',
  UINT64: 'uint64',
  INT8: 'int8',
  INT16: 'int16',
  INT32: 'int32',
  INT64: 'int64',
  // Few readers know half precision; every one of its values is a float32 too.
  FP16: 'float32',
  FP32: 'float32',
  FP64: 'float64',
} as const satisfies Record<string, NumericType>;

/** null: BYTES. */
export function numericTypeOf(datatype: OutputColumn['datatype']): NumericType | null {
  return datatype === 'BYTES' ? null : NUMERIC[datatype];
}

function elementsOf({ datatype, bytes }: OutputColumn): OutputElements {
  if (datatype === 'BYTES') return { kind: 'bytes', values: splitBytesElements(bytes) };
  if (bytes.byteLength % ELEMENT_BYTES[datatype] !== 0)
    throw new InferenceError('output_mismatch', `${bytes.byteLength} bytes hold no whole ${datatype}`);
  const values = asElements(datatype, bytes);
  if (datatype !== 'FP16') return { kind: 'number', type: NUMERIC[datatype], values };
  const wide = new Float32Array(values.length);
  for (let i = 0; i < wide.length; i++) wide[i] = fromHalfBits(values[i] as number);
  return { kind: 'number', type: 'float32', values: wide };
}
