/**
 * The answer of a row that cannot be run: no worker has lived to give it, so it is made here, with the row as it came
 * where that can be read.
 */
import type { ItemError } from '@remuda/schemas';
import type { ChunkResult } from '../chunk.js';
import type { RowBlock } from '../columns.js';
import type { RowReader } from '../input/bulk-input.js';
import { columnRows, rowAsJson, textAt } from '../row-values.js';
import { wantedColumns } from '../wanted-columns.js';
import type { CutPiece, Settled } from './journal-entries.js';
import type { Task } from './ledger.js';

export interface GuiltyRowDeps {
  piece: CutPiece;
  payload: Uint8Array | null;
  settled: Settled;
  rows: RowReader;
}

export async function guiltyRow(task: Task, error: ItemError, deps: GuiltyRowDeps): Promise<ChunkResult> {
  const { mapping } = deps.settled;
  const block = await blockOf(deps);
  const index = task.firstRow - deps.piece.firstRow;
  const id = block?.columns.find(({ name }) => name === mapping.idColumn);
  return {
    firstRow: task.firstRow,
    rows: 1,
    ...(block?.rowNumbers && { rowNumbers: [block.rowNumbers[index] as number] }),
    ids: mapping.idColumn === null ? null : [id ? textAt(id, index) : null],
    outputs: [],
    kept: mapping.keep.flatMap((name) => {
      const column = block?.columns.find((one) => one.name === name);
      return column ? [columnRows(column, index, index + 1)] : [];
    }),
    failures: [{ index: 0, error, input: block ? inputOf(block, index) : null }],
    device: '',
    workerId: '',
    seconds: 0,
  };
}

/** null: it cannot be read here either. */
async function blockOf({ piece, payload, settled, rows }: GuiltyRowDeps): Promise<RowBlock | null> {
  const { source, range, firstRow, rows: count } = piece;
  const wanted = {
    source,
    range,
    firstRow,
    rows: count,
    read: settled.read,
    columns: wantedColumns(settled.mapping),
  };
  return rows.read(wanted, payload).catch(() => null);
}

function inputOf(block: RowBlock, index: number): unknown {
  return block.rawOf?.(index) ?? rowAsJson(block.columns, index);
}
