/** Small answers of chunks for the tests of outputs, and what a coordinator does with their parts, in memory. */
import type { Datatype } from '@remuda/schemas';
import { itemError } from '../../errors.js';
import type { ChunkResult, OutputColumn } from '../chunk.js';
import { decodeResult, encodeResult } from '../chunk-codec.js';
import type { Column } from '../columns.js';
import type { OutputEncoder, StoredPart } from './bulk-output.js';

export function resultOf(rows: number, given: Partial<ChunkResult> = {}): ChunkResult {
  return {
    firstRow: 0,
    rows,
    ids: null,
    outputs: [],
    kept: [],
    failures: [],
    device: 'cpu',
    workerId: 'w',
    seconds: 0,
    ...given,
  };
}

export function failure(index: number, input: unknown = {}): ChunkResult['failures'][number] {
  return { index, error: itemError('invalid_row', `row ${index}: "x" is missing,\nand so on`), input };
}

const ARRAY = {
  FP32: Float32Array,
  FP64: Float64Array,
  FP16: Uint16Array,
  INT32: Int32Array,
  UINT8: Uint8Array,
  BOOL: Uint8Array,
  UINT32: Uint32Array,
} as const;

export function output(
  name: string,
  datatype: keyof typeof ARRAY,
  shape: number[] | null,
  elements: readonly number[],
  shapes?: (number[] | null)[],
): OutputColumn {
  const { buffer } = ARRAY[datatype].from(elements);
  return {
    name,
    datatype: datatype as Datatype,
    shape,
    bytes: new Uint8Array(buffer),
    ...(shapes && { shapes }),
  };
}

export function bigOutput(name: string, shape: number[], elements: readonly bigint[]): OutputColumn {
  return { name, datatype: 'INT64', shape, bytes: new Uint8Array(BigInt64Array.from(elements).buffer) };
}

export function int64(name: string, values: readonly bigint[], nulls?: number[]): Column {
  return {
    name,
    type: 'int64',
    values: BigInt64Array.from(values),
    ...(nulls && { nulls: Uint8Array.from(nulls) }),
  };
}

/** The parts of results, in order of their first rows. */
export async function partsOf(
  encoder: OutputEncoder,
  results: readonly ChunkResult[],
): Promise<StoredPart[]> {
  const parts: StoredPart[] = [];
  for (const result of results) {
    // As it comes from a runner.
    const { bytes, meta } = await encoder.encode(decodeResult(encodeResult(result)));
    // As a journal keeps it.
    const kept = meta === undefined ? undefined : (JSON.parse(JSON.stringify(meta)) as unknown);
    const { firstRow, rows } = result;
    parts.push({ firstRow, rows, length: bytes.length, meta: kept, read: async () => bytes });
  }
  return parts.sort((a, b) => a.firstRow - b.firstRow);
}

export async function joined(encoder: OutputEncoder, results: readonly ChunkResult[]): Promise<Buffer> {
  const written: Buffer[] = [];
  const parts = await partsOf(encoder, results);
  await encoder.join(parts, {
    write: async (bytes) => {
      written.push(Buffer.from(bytes));
    },
  });
  return Buffer.concat(written);
}
