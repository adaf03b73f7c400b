import type { ModelSignature } from '@remuda/schemas';
import { expect, it } from 'vitest';
import type { Mapping, ReadSettings } from '../chunk.js';
import { readWithTypes } from './read-types.js';

const input = (name: string, datatype: string) => ({ name, datatype }) as ModelSignature['inputs'][number];
const signature = {
  inputs: [
    input('x', 'FP32'),
    input('n', 'INT64'),
    input('t', 'BYTES'),
    input('e', 'FP32'),
    input('s', 'INT64'),
    input('one', 'BYTES'),
  ],
};
const mapping: Mapping = {
  inputs: [
    { input: 'x', columns: ['a', 'b'], rowShape: [2] },
    { input: 'n', columns: ['id'], rowShape: [] },
    { input: 't', columns: ['text'], rowShape: [] },
    { input: 'e', columns: ['embedding'], rowShape: [3] },
    { input: 's', columns: ['size'], rowShape: [1, 1] },
    { input: 'one', columns: ['word'], rowShape: [1] },
  ],
  keep: ['other'],
  idColumn: 'id',
};

it('columns of CSV have the types that the inputs need, and ids keep their letters', () => {
  const read: ReadSettings = { format: 'csv', types: { b: 'float32' } };
  expect(readWithTypes({ read }, mapping, signature)).toEqual({
    format: 'csv',
    types: {
      ...{ a: 'float64', b: 'float32', id: 'string', text: 'string', embedding: 'json' },
      ...{ size: 'int64', word: 'string' },
    },
  });
});

it('columns of formats that have types keep them', () => {
  const read: ReadSettings = { format: 'parquet' };
  expect(readWithTypes({ read }, mapping, signature)).toBe(read);
});
