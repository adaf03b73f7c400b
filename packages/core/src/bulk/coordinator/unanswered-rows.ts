/** Rows that have no answer but an error, since no worker has lived, or had the time, to give one: read here, as they came. */
import type { ItemError } from '@remuda/schemas';
import { idsOf, inputOf, keptOf } from '../block-rows.js';
import type { ChunkResult } from '../chunk.js';
import type { RowBlock } from '../columns.js';
import type { RowReader } from '../input/bulk-input.js';
import { wantedColumns } from '../wanted-columns.js';
import type { CutPiece, Settled } from './journal-entries.js';

/** All rows of a piece, with the columns that the job needs. */
export function readPiece(
  { source, range, firstRow, rows: count }: CutPiece,
  payload: Uint8Array | null,
  { read, mapping }: Settled,
  rows: RowReader,
): Promise<RowBlock> {
  const columns = wantedColumns(mapping);
  return rows.read({ source, range, firstRow, rows: count, read, columns }, payload);
}

/** @param block the rows of the piece; null: they cannot be read here either @param range of rows in the piece */
export function unanswered(
  piece: CutPiece,
  block: RowBlock | null,
  { from, to }: { from: number; to: number },
  { mapping, error }: { mapping: Settled['mapping']; error: ItemError },
): ChunkResult {
  return {
    firstRow: piece.firstRow + from,
    rows: to - from,
    ...(block?.rowNumbers && { rowNumbers: block.rowNumbers.slice(from, to) }),
    ids: block && idsOf(block, mapping, from, to),
    outputs: [],
    kept: block ? keptOf(block, mapping, from, to) : [],
    failures: Array.from({ length: to - from }, (_, index) => ({
      index,
      error,
      input: block && inputOf(block, from + index),
    })),
    device: '',
    workerId: '',
    seconds: 0,
  };
}
