/** Single values out of columns, and stretches of them: for ids, kept columns and the file of errors. */
import type { Column } from './columns.js';

/** Rows [from, to) of a column; views where it holds numbers. */
export function columnRows(column: Column, from: number, to: number): Column {
  const nulls = column.nulls?.subarray(from, to);
  const base = nulls ? { name: column.name, nulls } : { name: column.name };
  switch (column.type) {
    case 'string':
      return { ...base, type: column.type, values: column.values.slice(from, to) };
    case 'bytes':
      return { ...base, type: column.type, values: column.values.slice(from, to) };
    case 'json':
      return { ...base, type: column.type, values: column.values.slice(from, to) };
    case 'list': {
      const offsets = column.offsets.slice(from, to + 1);
      const first = offsets[0] ?? 0;
      const child = columnRows(column.child, first, offsets.at(-1) ?? first);
      return { ...base, type: column.type, offsets: offsets.map((offset) => offset - first), child };
    }
    default:
      return { ...base, type: column.type, values: column.values.subarray(from, to) };
  }
}

/** As JSON has it: 64-bit integers that a number cannot hold are texts; of bytes only how many there are. */
export function valueAt(column: Column, row: number): unknown {
  if (column.nulls?.[row] === 1) return null;
  if (column.type === 'list') {
    const [from = 0, to = 0] = column.offsets.subarray(row, row + 2);
    return Array.from({ length: to - from }, (_, i) => valueAt(column.child, from + i));
  }
  const value: unknown = column.values[row];
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return column.type === 'bool' ? value === 1 : (value ?? null);
}

/** A row as an object by column; null where there is no such value. */
export function rowAsJson(columns: readonly Column[], row: number): Record<string, unknown> {
  return Object.fromEntries(columns.map((column) => [column.name, valueAt(column, row)]));
}

/** What identifies a row, as text; null: it has none. */
export function textAt(column: Column, row: number): string | null {
  const value = valueAt(column, row);
  if (value === null) return null;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
