import { describe, expect, test } from 'vitest';
import { type DeclaredTensor, findBatchAxes } from './batch-axis.js';

const axesOf = (
  inputs: DeclaredTensor[],
  outputs: DeclaredTensor[] = [],
  overrides?: Record<string, number | null>,
): Record<string, number | null> => {
  const found = findBatchAxes(inputs, outputs, overrides);
  return Object.fromEntries([...found.inputs, ...found.outputs]);
};
const tensor = (name: string, ...shape: (number | string)[]): DeclaredTensor => ({ name, shape });

describe('real models, as ONNX Runtime describes them', () => {
  test('the text-direction classifier, whose output axis has another name', () => {
    const x = tensor('x', 'p2o.DynamicDimension.0', 3, 'p2o.DynamicDimension.1', 'p2o.DynamicDimension.2');
    expect(axesOf([x], [tensor('y', 'p2o.DynamicDimension.3', 2)])).toEqual({ x: 0, y: 0 });
  });

  test('the text recogniser, whose width is open too', () => {
    const x = tensor('x', 'p2o.DynamicDimension.0', 3, 48, 'p2o.DynamicDimension.1');
    const y = tensor('y', 'p2o.DynamicDimension.2', 'p2o.DynamicDimension.3', 6625);
    expect(axesOf([x], [y])).toEqual({ x: 0, y: 0 });
  });

  test('silero-vad: axis 1 of its state, none of the scalar', () => {
    const inputs = [tensor('input', 'batch', 'sequence'), tensor('sr'), tensor('state', 2, 'batch', 128)];
    const outputs = [tensor('output', 'batch', 1), tensor('stateN', 2, 'batch', 128)];
    expect(axesOf(inputs, outputs)).toEqual({ input: 0, sr: null, state: 1, output: 0, stateN: 1 });
  });
});

describe('where there is a doubt', () => {
  test('a lone open axis that is not the first is rows only when its name says so', () => {
    expect(axesOf([tensor('x', 2, 'N', 3)])).toEqual({ x: 1 });
    expect(axesOf([tensor('x', 1, 'seq_len', 80)], [tensor('y', 1, 'seq_len', 4)])).toEqual({
      x: null,
      y: null,
    });
  });

  test('a first axis named as a length is not rows', () => {
    expect(axesOf([tensor('x', 'sequence', 4)], [tensor('y', 'sequence')])).toEqual({ x: null, y: null });
  });

  test('of two shared axes the one that stands first wins', () => {
    expect(axesOf([tensor('ids', 'b0', 's0'), tensor('mask', 'b0', 's0')])).toEqual({ ids: 0, mask: 0 });
  });

  test('unnamed first axes are rows, named differently they are not', () => {
    expect(axesOf([tensor('a', '', 4), tensor('b', '', 2)], [tensor('y', '', 1)])).toEqual({
      a: 0,
      b: 0,
      y: 0,
    });
    expect(axesOf([tensor('a', 'u1', 4), tensor('b', 'u2', 2)])).toEqual({ a: null, b: null });
  });

  test('fixed inputs are shared; a model of only such is not batchable', () => {
    expect(axesOf([tensor('x', 'N', 4), tensor('w', 4)])).toEqual({ x: 0, w: null });
    expect(axesOf([tensor('x', 1, 4)], [tensor('y', 1, 4)])).toEqual({ x: null, y: null });
  });

  test('an output named after another input axis is not split', () => {
    expect(axesOf([tensor('x', 'N', 'L')], [tensor('y', 'L', 4)])).toEqual({ x: 0, y: null });
  });
});

describe('batch_axis of the configuration', () => {
  test('one override names the axis for the other tensors', () => {
    const inputs = [tensor('a', 2, 'k', 'l'), tensor('b', 'l', 'k')];
    expect(axesOf(inputs, [tensor('y', 'k')], { a: 1 })).toEqual({ a: 1, b: 1, y: 0 });
  });

  test('null says that a tensor has none', () => {
    expect(axesOf([tensor('x', 'N', 4)], [tensor('y', 'M')], { y: null })).toEqual({ x: 0, y: null });
    expect(axesOf([tensor('x', 'N', 4)], [tensor('y', 'N')], { x: null, y: null })).toEqual({
      x: null,
      y: null,
    });
  });
});
