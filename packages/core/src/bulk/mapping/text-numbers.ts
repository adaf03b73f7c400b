/** Numbers that came as text: of CSV without types, decimals, long integers in JSON. */
import type { Datatype } from '@remuda/schemas';
import type { Column } from '../columns.js';

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const WHOLE = /^[+-]?\d{1,25}(?:\.0*)?$/;
const SPECIAL = new Map([
  ['nan', Number.NaN],
  ['inf', Number.POSITIVE_INFINITY],
  ['+inf', Number.POSITIVE_INFINITY],
  ['-inf', Number.NEGATIVE_INFINITY],
  ['infinity', Number.POSITIVE_INFINITY],
  ['+infinity', Number.POSITIVE_INFINITY],
  ['-infinity', Number.NEGATIVE_INFINITY],
]);

/** null: it is none. Whole numbers for 64-bit integers keep all their digits. */
export function textToNumber(text: string, datatype: Datatype): number | bigint | null {
  const trimmed = text.trim();
  if (datatype === 'BOOL') {
    const lower = trimmed.toLowerCase();
    if (lower === 'true') return 1;
    if (lower === 'false') return 0;
  }
  if ((datatype === 'INT64' || datatype === 'UINT64') && WHOLE.test(trimmed)) {
    return BigInt(trimmed.replace(/^\+|\..*$/g, ''));
  }
  if (DECIMAL.test(trimmed)) return Number(trimmed);
  return SPECIAL.get(trimmed.toLowerCase()) ?? null;
}

/** A value as a message shows it. */
export function shownValue(column: Column, row: number): string {
  if (column.type === 'list') return 'a list';
  const value: unknown = column.values[row];
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  const text = typeof value === 'string' ? JSON.stringify(value) : shownJson(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

function shownJson(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
