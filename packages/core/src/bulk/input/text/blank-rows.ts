/** Rows that have failed, in columns that have been made: without a value in any, so that nobody takes half of one. */
import type { ItemError } from '@remuda/schemas';
import type { Column } from '../../columns.js';

export function blankRows(columns: readonly Column[], failures: ReadonlyMap<number, ItemError>): Column[] {
  if (failures.size === 0) return [...columns];
  return columns.map((column) => blanked(column, [...failures.keys()]));
}

function blanked(column: Column, rows: readonly number[]): Column {
  const length = column.type === 'list' ? column.offsets.length - 1 : column.values.length;
  const nulls = column.nulls ?? new Uint8Array(length);
  for (const row of rows) {
    nulls[row] = 1;
    if (column.type === 'string' || column.type === 'json' || column.type === 'bytes')
      column.values[row] = null;
  }
  return { ...column, nulls };
}
