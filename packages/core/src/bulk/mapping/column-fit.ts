/** Whether a column's type can give an input at all, so that a job of a million rows does not begin to fail each of them. */
import type { SignatureTensor } from '@remuda/schemas';
import type { ColumnInfo } from '../columns.js';

const NUMBER = /^(bool|u?int(8|16|32|64|128)|float(16|32|64)|decimal.*)$/;
/** Types that say nothing of their values. */
const ANY: ReadonlySet<string> = new Set(['json', 'null']);

/** What the input needs of its columns, in words; null where this one may give it. */
export function misfit(input: SignatureTensor, { type }: ColumnInfo): string | null {
  if (type === null) return null;
  const element = elementOf(type);
  if (ANY.has(element)) return null;
  if (input.kind === 'image') {
    return ['bytes', 'image', 'string'].includes(type) ? null : 'a column of image files (bytes, or base64)';
  }
  if (input.datatype === 'BYTES') {
    return NUMBER.test(element) && !element.startsWith('decimal') ? 'a column of strings' : null;
  }
  return NUMBER.test(element) ? null : `a column of numbers (${input.datatype})`;
}

function elementOf(type: string): string {
  const inside = /^list<(.*)>$/.exec(type)?.[1];
  return inside === undefined ? type : elementOf(inside);
}
