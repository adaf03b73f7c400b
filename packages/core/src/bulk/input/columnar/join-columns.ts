/** Columns put together: pieces of one from several batches, and rows taken by their places, as from a dictionary. */
import type { Column, NumericValues } from '../../columns.js';
import { NUMERIC_ARRAY } from './growing-column.js';

/** Pieces of one column, one behind the other. */
export function joinColumns(pieces: readonly Column[]): Column {
  const [first] = pieces as [Column];
  if (pieces.length === 1) return first;
  const { name } = first;
  const nulls = joinNulls(pieces);
  if (first.type === 'list') return { name, ...joinLists(pieces), ...nulls };
  if (first.type === 'string' || first.type === 'bytes' || first.type === 'json') {
    const values = pieces.flatMap((piece) => (piece as { values: unknown[] }).values);
    return { name, type: first.type, values, ...nulls } as Column;
  }
  const total = pieces.reduce((sum, piece) => sum + rowsOf(piece), 0);
  const values = new NUMERIC_ARRAY[first.type](total);
  let at = 0;
  for (const piece of pieces) {
    const own = (piece as { values: NumericValues }).values;
    (values as Float64Array).set(own as Float64Array, at);
    at += own.length;
  }
  return { name, type: first.type, values, ...nulls };
}

/** The rows at these places, in their order. */
export function takeRows(column: Column, places: Uint32Array): Column {
  const { name, nulls } = column;
  const marks = nulls && { nulls: Uint8Array.from(places, (place) => nulls[place] as number) };
  if (column.type === 'list') {
    const lengths = Array.from(
      places,
      (place) => (column.offsets[place + 1] ?? 0) - (column.offsets[place] ?? 0),
    );
    const offsets = new Uint32Array(places.length + 1);
    for (const [i, length] of lengths.entries()) offsets[i + 1] = (offsets[i] as number) + length;
    const inside = new Uint32Array(offsets.at(-1) as number);
    for (const [i, place] of places.entries()) {
      for (
        let at = offsets[i] as number, from = column.offsets[place] ?? 0;
        at < (offsets[i + 1] as number);
        at++
      ) {
        inside[at] = from++;
      }
    }
    return { name, type: 'list', offsets, child: takeRows(column.child, inside), ...marks };
  }
  if (column.type === 'string' || column.type === 'bytes' || column.type === 'json') {
    const source: readonly unknown[] = column.values;
    const values = Array.from(places, (place) => source[place] ?? null);
    return { name, type: column.type, values, ...marks } as Column;
  }
  const values = new NUMERIC_ARRAY[column.type](places.length);
  for (let i = 0; i < places.length; i++) values[i] = column.values[places[i] as number] as never;
  return { name, type: column.type, values, ...marks };
}

export function rowsOf(column: Column): number {
  return column.type === 'list' ? column.offsets.length - 1 : column.values.length;
}

function joinNulls(pieces: readonly Column[]): { nulls?: Uint8Array } {
  if (!pieces.some(({ nulls }) => nulls)) return {};
  const total = pieces.reduce((sum, piece) => sum + rowsOf(piece), 0);
  const nulls = new Uint8Array(total);
  let at = 0;
  for (const piece of pieces) {
    if (piece.nulls) nulls.set(piece.nulls, at);
    at += rowsOf(piece);
  }
  return { nulls };
}

function joinLists(pieces: readonly Column[]): { type: 'list'; offsets: Uint32Array; child: Column } {
  const lists = pieces as Extract<Column, { type: 'list' }>[];
  const total = lists.reduce((sum, piece) => sum + rowsOf(piece), 0);
  const offsets = new Uint32Array(total + 1);
  let row = 0;
  for (const { offsets: own } of lists) {
    const base = (offsets[row] as number) - (own[0] as number);
    for (let i = 1; i < own.length; i++) offsets[row + i] = base + (own[i] as number);
    row += own.length - 1;
  }
  return { type: 'list', offsets, child: joinColumns(lists.map(({ child }) => child)) };
}
