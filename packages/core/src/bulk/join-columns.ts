/** Columns of consecutive blocks as one. */
import type { Column, NumericValues } from './columns.js';
import { columnRows } from './row-values.js';

/** Blocks of one input: the columns of each are of the same names and types, in the same order. */
export function joinColumns(blocks: readonly Column[][]): Column[] {
  const [first, ...rest] = blocks;
  if (!first || rest.length === 0) return first ?? [];
  return first.map((_, at) => joined(blocks.map((columns) => columns[at] as Column)));
}

function joined(parts: readonly Column[]): Column {
  const { name, type } = parts[0] as Column;
  const nulls = nullsOf(parts);
  const base = nulls ? { name, nulls } : { name };
  switch (type) {
    case 'string':
    case 'bytes':
    case 'json':
      return {
        ...base,
        type,
        values: parts.flatMap((part) => (part as { values: unknown[] }).values),
      } as Column;
    case 'list':
      return { ...base, type, ...joinedLists(parts as Extract<Column, { type: 'list' }>[]) };
    default:
      return {
        ...base,
        type,
        values: joinedNumbers(parts.map((part) => (part as { values: NumericValues }).values)),
      };
  }
}

export function rowsOf(column: Column): number {
  return column.type === 'list' ? column.offsets.length - 1 : column.values.length;
}

function nullsOf(parts: readonly Column[]): Uint8Array | undefined {
  if (parts.every(({ nulls }) => nulls === undefined)) return undefined;
  return joinedNumbers(parts.map((part) => part.nulls ?? new Uint8Array(rowsOf(part)))) as Uint8Array;
}

function joinedNumbers(parts: readonly NumericValues[]): NumericValues {
  const [first] = parts as [NumericValues];
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const all = new (first.constructor as new (length: number) => NumericValues)(length);
  let at = 0;
  for (const part of parts) {
    // Of one type all of them, which the compiler cannot know.
    (all as Float64Array).set(part as Float64Array, at);
    at += part.length;
  }
  return all;
}

function joinedLists(parts: readonly Extract<Column, { type: 'list' }>[]): {
  offsets: Uint32Array;
  child: Column;
} {
  const offsets = [0];
  const children = parts.map((part) => {
    const first = part.offsets[0] ?? 0;
    const last = part.offsets.at(-1) ?? first;
    const base = (offsets.at(-1) as number) - first;
    for (const offset of part.offsets.subarray(1)) offsets.push(base + offset);
    return columnRows(part.child, first, last);
  });
  return { offsets: Uint32Array.from(offsets), child: joined(children) };
}
