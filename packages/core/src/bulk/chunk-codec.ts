/**
 * Orders and answers of chunks as the frames of ordinary requests: the input frame of a chunk holds its order (and its
 * rows, where they travel), the outcome frame its answers.
 */
import { decodeFrame, encodeFrame, type ItemMetrics, type RawTensor } from '@remuda/schemas';
import { asElements } from '../harness/onnx-types.js';
import type { ChunkOrder, ChunkResult, OutputColumn, RowFailure } from './chunk.js';
import { type ColumnFacts, decodeColumns, encodeColumns } from './column-codec.js';
import type { Column } from './columns.js';

/** Stands in place of the batch's number of rows of an output whose rows differ. */
const ROWS = 'rows';

export function encodeOrder(order: ChunkOrder, payload: Uint8Array | null): Buffer {
  const tensors: RawTensor[] =
    payload === null ? [] : [{ name: ROWS, datatype: 'UINT8', shape: [payload.byteLength], bytes: payload }];
  return encodeFrame('inputs', tensors, { chunk: order });
}

/** null: the frame is that of an ordinary item. */
export function decodeOrder(frame: Uint8Array): { order: ChunkOrder; payload: Uint8Array | null } | null {
  const { tensors, extras } = decodeFrame(frame);
  if (extras.chunk === undefined) return null;
  return { order: extras.chunk as ChunkOrder, payload: tensors[0]?.bytes ?? null };
}

/** What of a result is no tensor. */
interface ResultFacts
  extends Pick<ChunkResult, 'firstRow' | 'rows' | 'digest' | 'device' | 'workerId' | 'seconds'> {
  hasIds: boolean;
  hasNumbers: boolean;
  outputs: Omit<OutputColumn, 'bytes'>[];
  kept: ColumnFacts[];
  failures: RowFailure[];
}

/** @param metrics stand in every outcome frame */
export function encodeResult(result: ChunkResult, metrics?: ItemMetrics): Buffer {
  const { firstRow, rows, digest, device, workerId, seconds, ids, rowNumbers, outputs, kept, failures } =
    result;
  const aside: Column[] = [
    ...(ids ? [{ name: 'ids', type: 'json', values: ids } as const] : []),
    ...(rowNumbers
      ? [{ name: 'numbers', type: 'float64', values: Float64Array.from(rowNumbers) } as const]
      : []),
    ...kept,
  ];
  const columns = encodeColumns(aside);
  const facts: ResultFacts = {
    ...{ firstRow, rows, device, workerId, seconds, failures },
    ...(digest && { digest }),
    hasIds: ids !== null,
    hasNumbers: rowNumbers !== undefined,
    outputs: outputs.map(({ bytes, ...described }) => described),
    kept: columns.facts,
  };
  const tensors = outputs.map(
    // Bytes and nothing else: what they are stands in the facts.
    ({ name, bytes }): RawTensor => ({ name, datatype: 'UINT8', shape: [bytes.byteLength], bytes }),
  );
  return encodeFrame('outputs', [...tensors, ...columns.tensors], {
    chunk: facts,
    ...(metrics && { metrics }),
  });
}

/** The arrays are views into the frame where they lie aligned. */
export function decodeResult(frame: Uint8Array): ChunkResult {
  const { tensors, extras } = decodeFrame(frame);
  const { hasIds, hasNumbers, outputs, kept, ...facts } = extras.chunk as ResultFacts;
  const columns = decodeColumns(kept, tensors.slice(outputs.length));
  const ids = hasIds ? (columns.shift() as { values: ChunkResult['ids'] }).values : null;
  const numbers = hasNumbers ? (columns.shift() as { values: Float64Array }).values : undefined;
  return {
    ...facts,
    ids,
    ...(numbers && { rowNumbers: Array.from(numbers) }),
    outputs: outputs.map((described, i) => ({ ...described, bytes: (tensors[i] as RawTensor).bytes })),
    kept: columns,
  };
}

/** Elements of an output with a fixed datatype, aligned. */
export function elementsOf({ datatype, bytes }: OutputColumn): ReturnType<typeof asElements> {
  if (datatype === 'BYTES') throw new Error('BYTES elements have lengths of their own');
  return asElements(datatype, bytes);
}
