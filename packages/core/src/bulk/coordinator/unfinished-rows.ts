/** The rows of an expired job that were not run, as answers that hold nothing but an error each, for the file of errors. */
import { itemError } from '../../errors.js';
import type { ChunkResult } from '../chunk.js';
import type { InputPosition, OpenedInput, RowReader } from '../input/bulk-input.js';
import { rowAsJson, textAt } from '../row-values.js';
import { wantedColumns } from '../wanted-columns.js';
import type { CutPiece, Settled } from './journal-entries.js';
import type { Ledger } from './ledger.js';

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
  { from, to }: { from: number; to: number },
  { settled, input, rows, window }: UnfinishedDeps,
): Promise<ChunkResult> {
  const { source, range, firstRow, rows: count } = piece;
  const payload = range.kind === 'payload' ? await input.payloadOf(piece) : null;
  const wanted = {
    source,
    range,
    firstRow,
    rows: count,
    read: settled.read,
    columns: wantedColumns(settled.mapping),
  };
  const block = await rows.read(wanted, payload);
  const { idColumn } = settled.mapping;
  const id = block.columns.find(({ name }) => name === idColumn);
  const error = itemError('batch_expired', `it was not run within the completion window of ${window}`);
  const indexes = Array.from({ length: to - from }, (_, i) => from + i);
  return {
    firstRow: firstRow + from,
    rows: to - from,
    ...(block.rowNumbers && { rowNumbers: block.rowNumbers.slice(from, to) }),
    ids: idColumn === null ? null : indexes.map((index) => (id ? textAt(id, index) : null)),
    outputs: [],
    kept: [],
    failures: indexes.map((index, i) => ({
      index: i,
      error,
      input: block.rawOf?.(index) ?? rowAsJson(block.columns, index),
    })),
    device: '',
    workerId: '',
    seconds: 0,
  };
}
