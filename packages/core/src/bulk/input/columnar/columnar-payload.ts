/** Rows of a columnar file as bytes, for a worker that cannot read the file: a frame of their columns. */
import { decodeFrame, encodeFrame } from '@remuda/schemas';
import { type ColumnFacts, decodeColumns, encodeColumns } from '../../column-codec.js';
import type { Column } from '../../columns.js';

export function encodePayload(columns: readonly Column[]): Uint8Array {
  const { facts, tensors } = encodeColumns(columns);
  return encodeFrame('inputs', tensors, { columns: facts });
}

export function decodePayload(payload: Uint8Array): Column[] {
  const { tensors, extras } = decodeFrame(payload);
  return decodeColumns(extras.columns as ColumnFacts[], tensors);
}
