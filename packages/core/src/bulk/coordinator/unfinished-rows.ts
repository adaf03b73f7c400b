/** The rows of an expired job that were not run, as answers that hold nothing but an error each, for the file of errors. */
import { itemError } from '../../errors.js';
import type { ChunkResult } from '../chunk.js';
import type { InputPosition, OpenedInput, RowReader } from '../input/bulk-input.js';
import type { CutPiece, Settled } from './journal-entries.js';
import type { Ledger } from './ledger.js';
import { readPiece, unanswered } from './unanswered-rows.js';

const AT_ONCE = { rows: 4_096, bytes: 8 * 1024 * 1024 };

export interface UnfinishedDeps {
  ledger: Ledger;
  settled: Settled;
  input: OpenedInput;
  rows: RowReader;
  window: string;
}

export async function* unfinishedRows(deps: UnfinishedDeps): AsyncGenerator<ChunkResult> {
  const { ledger, input } = deps;
  for (const { firstRow, rows } of ledger.tasks()) {
    if (ledger.isStale(firstRow)) continue;
    const piece = ledger.pieceOf(firstRow);
    const from = firstRow - piece.firstRow;
    yield await errorsOf(piece, { from, to: from + rows }, deps);
  }
  let next: InputPosition = ledger.next;
  for (;;) {
    const piece = await input.cut(next, { ...AT_ONCE, multipleOf: 1 });
    if (!piece) return;
    yield await errorsOf({ ...piece, at: next }, { from: 0, to: piece.rows }, deps);
    next = piece.next;
  }
}

async function errorsOf(
  piece: CutPiece,
  range: { from: number; to: number },
  { settled, input, rows, window }: UnfinishedDeps,
): Promise<ChunkResult> {
  const payload = piece.range.kind === 'payload' ? await input.payloadOf(piece) : null;
  const block = await readPiece(piece, payload, settled, rows);
  const error = itemError('batch_expired', `it was not run within the completion window of ${window}`);
  return unanswered(piece, block, range, { mapping: settled.mapping, error });
}
