/** Rows of a column by their places, in any order: what a dictionary is read by. */
import type { Column } from '../../columns.js';
import { NUMERIC_ARRAY } from '../../numeric-types.js';

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
