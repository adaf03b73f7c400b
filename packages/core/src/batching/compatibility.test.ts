import type { RawTensor, SignatureTensor } from '@remuda/schemas';
import { expect, test } from 'vitest';
import { compatibilityKey } from './compatibility.js';

const x: SignatureTensor = { name: 'x', datatype: 'FP32', shape: ['N', 'L'], batch_axis: 0, kind: 'tensor' };
const sr: SignatureTensor = { name: 'sr', datatype: 'INT64', shape: [], batch_axis: null, kind: 'tensor' };
const signature = {
  inputs: [x, sr],
  padding: [{ input: 'x', axis: 1, multiple_of: 8, value: 0, restore: [] }],
};

function key(changes: {
  shape?: number[];
  datatype?: RawTensor['datatype'];
  rate?: number;
  parameters?: Record<string, unknown>;
  version?: string;
}): string {
  const { shape = [1, 16], datatype = 'FP32', rate = 1, parameters, version = '1' } = changes;
  const tensors: RawTensor[] = [
    { name: 'sr', datatype: 'INT64', shape: [], bytes: Uint8Array.of(rate, 0, 0, 0, 0, 0, 0, 0) },
    { name: 'x', datatype, shape, bytes: new Uint8Array(0) },
  ];
  return compatibilityKey({ signature, tensors, parameters, version });
}

test('rows and lengths within a bucket do not part requests', () => {
  expect(key({ shape: [5, 9] })).toBe(key({}));
});

test('everything that a run holds once parts them', () => {
  const others = [
    key({ shape: [1, 17] }),
    key({ datatype: 'FP64' }),
    key({ rate: 2 }),
    key({ version: '2' }),
    key({ parameters: { top: 1 } }),
  ];
  expect(new Set([key({}), ...others]).size).toBe(6);
});

test('the order of parameters is nothing, no parameters and an empty object are one', () => {
  expect(key({ parameters: { a: 1, b: { c: 2, d: 3 } } })).toBe(
    key({ parameters: { b: { d: 3, c: 2 }, a: 1 } }),
  );
  expect(key({ parameters: {} })).toBe(key({}));
});

test('it is short', () => {
  expect(key({})).toMatch(/^[A-Za-z0-9_-]{22}$/);
});
