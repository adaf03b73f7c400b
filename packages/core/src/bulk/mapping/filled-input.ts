/** One input of all rows of a block, filled row behind row; rows that failed hold nothing of meaning. */
import type { SignatureTensor } from '@remuda/schemas';
import type { Column } from '../columns.js';

export interface InputColumns {
  input: SignatureTensor;
  columns: readonly Column[];
  rowShape: readonly number[];
  rows: number;
}

export interface FilledInput {
  input: SignatureTensor;
  bytes: Uint8Array;
  /** Byte at which a row begins; of the number of rows: the end. */
  startOf(row: number): number;
  /** Without the batch axis. */
  shapeOf(row: number): readonly number[];
  /** Whether the shape is that of its rows, each its own. */
  ragged: boolean;
}

/** Rows of one size. */
export function evenInput(
  input: SignatureTensor,
  bytes: Uint8Array,
  rowBytes: number,
  rowShape: readonly number[],
): FilledInput {
  return { input, bytes, startOf: (row) => row * rowBytes, shapeOf: () => rowShape, ragged: false };
}
