/** The answer of a row that cannot be run: it is made here, with the row as it came where that can be read. */
import type { ItemError } from '@remuda/schemas';
import type { ChunkResult } from '../chunk.js';
import type { RowReader } from '../input/bulk-input.js';
import type { CutPiece, Settled } from './journal-entries.js';
import type { Task } from './ledger.js';
import { readPiece, unanswered } from './unanswered-rows.js';

export interface GuiltyRowDeps {
  piece: CutPiece;
  payload: Uint8Array | null;
  settled: Settled;
  rows: RowReader;
}

export async function guiltyRow(
  { firstRow }: Task,
  error: ItemError,
  { piece, payload, settled, rows }: GuiltyRowDeps,
): Promise<ChunkResult> {
  const block = await readPiece(piece, payload, settled, rows).catch(() => null);
  const from = firstRow - piece.firstRow;
  return unanswered(piece, block, { from, to: from + 1 }, { mapping: settled.mapping, error });
}
