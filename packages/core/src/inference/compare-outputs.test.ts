import { type Datatype, decodeTensor, joinBytesElements, type RawTensor } from '@remuda/schemas';
import { describe, expect, test } from 'vitest';
import { compareOutputs, differenceText } from './compare-outputs.js';

const tolerance = { abs: 1e-4, rel: 1e-3 };

function tensor(datatype: Datatype, shape: number[], data: unknown[], name = 'y'): RawTensor {
  return decodeTensor(name, { datatype, shape, data }, []);
}

/** The comparison of one output with itself as expected. */
function compare(expected: RawTensor, actual: RawTensor, allowed = tolerance) {
  const comparison = compareOutputs([expected], [actual], allowed);
  const [output] = comparison.outputs;
  if (!output) throw new Error('nothing was compared');
  return { ...output, ok: comparison.ok && output.ok };
}

describe('floats', () => {
  test('are held to abs + rel × |expected|', () => {
    const expected = tensor('FP32', [3], [0, 1000, -1000]);
    expect(compare(expected, tensor('FP32', [3], [0.00009, 1001, -1000.9]))).toMatchObject({
      ok: true,
      differing: 0,
      firstDiffering: null,
      maxAbsError: 1,
    });
    const off = compare(expected, tensor('FP32', [3], [0, 1001.01, -1000]));
    expect(off).toMatchObject({ ok: false, differing: 1, firstDiffering: 1, elements: 3 });
    expect(off.maxRelError).toBeCloseTo(0.00101, 5);
  });

  test.each(['FP16', 'FP32', 'FP64'] as const)('of %s: NaN equals NaN, and nothing else does', (datatype) => {
    const expected = tensor(datatype, [4], ['NaN', 'Infinity', 1, '-Infinity']);
    expect(compare(expected, expected)).toMatchObject({ ok: true, maxAbsError: 0 });
    const actual = tensor(datatype, [4], [1, '-Infinity', 'NaN', '-Infinity']);
    // No finite number says how far NaN is from 1.
    expect(compare(expected, actual, { abs: 1e9, rel: 1e9 })).toMatchObject({
      ok: false,
      differing: 3,
      firstDiffering: 0,
      maxAbsError: 0,
    });
  });

  test('zero and minus zero are equal', () => {
    expect(compare(tensor('FP32', [1], [0]), tensor('FP32', [1], [-0]), { abs: 0, rel: 0 }).ok).toBe(true);
  });
});

describe('other datatypes', () => {
  test.each(['UINT8', 'UINT16', 'UINT32', 'UINT64', 'INT8', 'INT16', 'INT32', 'INT64'] as const)(
    '%s is held to abs alone',
    (datatype) => {
      const [expected, actual] = [tensor(datatype, [2], [100, 7]), tensor(datatype, [2], [101, 7])];
      expect(compare(expected, actual, { abs: 0.5, rel: 1 })).toMatchObject({
        ok: false,
        differing: 1,
        maxAbsError: 1,
        maxRelError: 0.01,
      });
      expect(compare(expected, actual, { abs: 1, rel: 0 }).ok).toBe(true);
    },
  );

  test('64-bit integers beyond 2^53 are told apart', () => {
    const expected = tensor('INT64', [1], ['9007199254740993']);
    expect(compare(expected, tensor('INT64', [1], ['9007199254740992']))).toMatchObject({
      ok: false,
      maxAbsError: 1,
    });
  });

  test('BOOL and BYTES must be equal', () => {
    const bools = tensor('BOOL', [2], [true, false]);
    expect(compare(bools, bools).ok).toBe(true);
    expect(compare(bools, tensor('BOOL', [2], [true, true]))).toMatchObject({ ok: false, differing: 1 });
    const texts = tensor('BYTES', [2], ['a', 'b']);
    const bytes = joinBytesElements([Buffer.from('a'), Buffer.from([0xff, 0])]);
    expect(compare(texts, { ...texts, bytes })).toMatchObject({
      ok: false,
      differing: 1,
      firstDiffering: 1,
      top1: null,
    });
  });
});

describe('the highest value along the last axis', () => {
  test('is counted slice by slice, and does not decide', () => {
    const expected = tensor('FP32', [2, 3], [1, 2, 3, 9, 8, 7]);
    const actual = tensor('FP32', [2, 3], [1, 3, 2, 9, 8, 7]);
    expect(compare(expected, actual, { abs: 5, rel: 0 })).toMatchObject({
      ok: true,
      top1: { slices: 2, changed: 1 },
    });
    expect(compareOutputs([expected], [actual], tolerance)).toMatchObject({ ok: false, changedTop1: 1 });
  });

  test('is the first of equal ones, and never NaN', () => {
    const expected = tensor('FP32', [1, 3], [5, 5, 'NaN']);
    expect(compare(expected, tensor('FP32', [1, 3], [5, 4, 'NaN'])).top1).toEqual({ slices: 1, changed: 0 });
  });

  test('is not looked for where there is nothing to choose from', () => {
    for (const shape of [[], [1], [3, 1], [0, 4]]) {
      const empty = tensor('FP32', shape, new Array(shape.reduce((a, b) => a * b, 1)).fill(1));
      expect(compare(empty, empty).top1).toBeNull();
    }
  });
});

test('what cannot be compared says why; further outputs are not looked at', () => {
  const expected = [
    tensor('FP32', [1], [1], 'a'),
    tensor('FP32', [1], [1], 'b'),
    tensor('FP32', [1], [1], 'c'),
  ];
  const actual = [
    tensor('FP64', [1], [1], 'a'),
    tensor('FP32', [2], [1, 1], 'b'),
    tensor('FP32', [1], [1], 'd'),
  ];
  const { ok, outputs } = compareOutputs(expected, actual, tolerance);
  expect(ok).toBe(false);
  expect(outputs.map((output) => differenceText(output, tolerance))).toEqual([
    'output "a" is FP64, expected FP32',
    'output "b" has shape [2], expected [1]',
    'output "c" is missing',
  ]);
  expect(compareOutputs([], actual, tolerance)).toMatchObject({ ok: true, outputs: [], maxAbsError: 0 });
});

test('a difference is told with its place, the errors and what is allowed', () => {
  const output = compare(tensor('FP32', [2], [1, 2]), tensor('FP32', [2], [1, 2.5]));
  expect(differenceText(output, tolerance)).toBe(
    'output "y": 1 of 2 elements differ, the first at 1; max abs error 0.5, max rel error 0.25, allowed abs 0.0001 + rel 0.001 × |expected|',
  );
});
