import type { ModelSignature, SignatureTensor } from '@remuda/schemas';
import { expect, it } from 'vitest';
import { inputDifferences, versionDifferences } from './compatible-signatures.js';

const x: SignatureTensor = { name: 'x', datatype: 'FP32', shape: ['N', 3], batch_axis: 0, kind: 'tensor' };

function signature(inputs: SignatureTensor[], outputs: SignatureTensor[] = [x]): ModelSignature {
  return {
    ...{ model: 'm', version: '1', digest: 'd', harness: 'onnx', inputs, outputs, batchable: true },
    ...{ max_batch_size: 8, padding: [], parameters_schema: null, streams: false, affinity: ['cpu'] },
  };
}

it('inputs of the same names, datatypes, axes and shapes fit, whatever their axes are called', () => {
  expect(inputDifferences(signature([x]), signature([{ ...x, shape: ['batch', 3] }]))).toEqual([]);
});

it.each([
  [[{ ...x, name: 'y' }], ['input y is not on both sides', 'input x is not on both sides']],
  [[{ ...x, datatype: 'INT64' as const }], ['input x: datatype FP32 and INT64']],
  [[{ ...x, shape: ['N', 4] }], ['input x: shape [N, 3] and [N, 4]']],
  [[{ ...x, shape: ['N'] }], ['input x: shape [N, 3] and [N]']],
  [[{ ...x, batch_axis: null }], ['input x: batch axis 0 and none']],
  [[{ ...x, kind: 'image' as const }], ['input x: kind image and tensor']],
])('%j does not fit, and it is told why', (inputs, why) => {
  expect(inputDifferences(signature([x]), signature(inputs))).toEqual(why);
});

it('an axis that takes any length fits one that is fixed, and not the other way round', () => {
  const open = signature([{ ...x, shape: ['N', 'width'] }]);
  expect(inputDifferences(signature([x]), open)).toEqual([]);
  expect(inputDifferences(open, signature([x]))).toEqual(['input x: shape [N, 3] and [N, width]']);
});

it('versions that share requests must fit both ways, outputs too, and each difference is told once', () => {
  expect(versionDifferences(signature([x]), signature([x]))).toEqual([]);
  const other = signature([x], [{ ...x, datatype: 'FP64' }]);
  expect(versionDifferences(signature([x]), other)).toEqual(['output x: datatype FP32 and FP64']);
});
