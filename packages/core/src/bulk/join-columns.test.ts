import { expect, it } from 'vitest';
import type { Column } from './columns.js';
import { joinColumns } from './join-columns.js';
import { columnRows, rowAsJson } from './row-values.js';

const whole: Column[] = [
  { name: 'n', type: 'int32', values: Int32Array.of(1, 2, 3, 4, 5), nulls: Uint8Array.of(0, 1, 0, 0, 0) },
  { name: 'text', type: 'string', values: ['a', null, 'c', '', 'e'], nulls: Uint8Array.of(0, 1, 0, 0, 0) },
  { name: 'any', type: 'json', values: [{ a: 1 }, [2], null, 'd', 5] },
  {
    name: 'list',
    type: 'list',
    offsets: Uint32Array.of(0, 2, 2, 5, 6, 9),
    child: { name: 'item', type: 'float32', values: Float32Array.from({ length: 9 }, (_, i) => i + 0.5) },
  },
];
const rows = (columns: readonly Column[]) => [0, 1, 2, 3, 4].map((row) => rowAsJson(columns, row));

it('columns that are cut into blocks anywhere, and joined, are what they were', () => {
  for (let first = 0; first <= 5; first++) {
    for (let second = first; second <= 5; second++) {
      const ends: [number, number][] = [
        [0, first],
        [first, second],
        [second, 5],
      ];
      const blocks = ends.map(([from, to]) => whole.map((column) => columnRows(column, from, to)));
      expect(rows(joinColumns(blocks))).toEqual(rows(whole));
    }
  }
});

it('marks of a block without any are added where another has some', () => {
  const [n] = whole as [Column];
  const { nulls, ...bare } = columnRows(n, 2, 5);
  const joined = joinColumns([[columnRows(n, 0, 2)], [bare as Column]]);
  expect(rows(joined)).toEqual(rows([n]));
});
