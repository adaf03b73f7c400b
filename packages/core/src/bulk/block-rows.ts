/** What goes into the answers of rows beside the outputs: who they are, what is kept of them, how they came. */
import type { ChunkResult, Mapping } from './chunk.js';
import type { Column, RowBlock } from './columns.js';
import { columnRows, rowAsJson, textAt } from './row-values.js';

/** Of rows [from, to); null: the job has no ids, or the block none. */
export function idsOf(
  { columns }: RowBlock,
  { idColumn }: Pick<Mapping, 'idColumn'>,
  from: number,
  to: number,
): ChunkResult['ids'] {
  const column = idColumn === null ? undefined : columns.find(({ name }) => name === idColumn);
  return column ? Array.from({ length: to - from }, (_, i) => textAt(column, from + i)) : null;
}

export function keptOf(
  { columns }: RowBlock,
  { keep }: Pick<Mapping, 'keep'>,
  from: number,
  to: number,
): Column[] {
  return keep.flatMap((name) => {
    const column = columns.find((one) => one.name === name);
    return column ? [columnRows(column, from, to)] : [];
  });
}

/** The row as it came. */
export function inputOf(block: RowBlock, row: number): unknown {
  return block.rawOf?.(row) ?? rowAsJson(block.columns, row);
}
