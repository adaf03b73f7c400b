/** A row of a column of lists as the piece of its innermost column that holds it, and the shape it has. */
import type { Column } from '../columns.js';

export type ListRow = { shape: number[] } & (
  | { leaf: Column; from: number; to: number }
  /** JSON: a value, or nested arrays. */
  | { value: unknown }
);

/** @returns ragged: what differs, in words */
export function listRow(column: Column, row: number): ListRow | { ragged: string } {
  const shape: number[] = [];
  let level = column;
  let from = row;
  let to = row + 1;
  while (level.type === 'list') {
    const { offsets } = level;
    const begin = offsets[from] as number;
    const length = from < to ? (offsets[from + 1] as number) - begin : 0;
    for (let i = from + 1; i < to; i++) {
      const other = (offsets[i + 1] as number) - (offsets[i] as number);
      if (other !== length) return { ragged: `one of ${length} and one of ${other} values` };
    }
    if (shape.length > 0 && level.nulls?.subarray(from, to).includes(1))
      return { ragged: 'null in place of a list' };
    shape.push(length);
    to = offsets[to] as number;
    from = begin;
    level = level.child;
  }
  return { shape, leaf: level, from, to };
}
