import { beforeAll, expect, test } from 'vitest';
import { inspectModel } from './inspect-model.js';
import { bundledModels, makeModels, prepareBundled, sourceOf } from './test-models.fixture.js';

let repository: string;
beforeAll(async () => {
  repository = await makeModels();
  await prepareBundled();
});

test('a signature is what users see: behind hooks, the image', async () => {
  const signature = await inspectModel(sourceOf(bundledModels, 'text-direction'));
  expect(signature).toMatchObject({
    model: 'text-direction',
    batchable: true,
    inputs: [{ name: 'image', datatype: 'BYTES', shape: ['N'], batch_axis: 0, kind: 'image' }],
    outputs: [{ name: 'label' }, { name: 'score' }, { name: 'probabilities', shape: ['N', 2] }],
  });
});

test('a model without batch axes takes one row at a time', async () => {
  const signature = await inspectModel(sourceOf(repository, 'fixed-batch'));
  expect(signature).toMatchObject({ batchable: false, max_batch_size: 1 });
});

test('padding that does not fit the model is refused by name', async () => {
  const padding = [{ input: 'x', axis: 1, restore: [{ output: 'z', axis: 1 }] }];
  await expect(inspectModel(sourceOf(repository, 'variable-length', { padding }))).rejects.toThrow(
    'padding: the model has no output "z"',
  );
});

test('what cannot be loaded says why, and a time-out is one', async () => {
  await expect(inspectModel(sourceOf(repository, 'corrupt'))).rejects.toThrow('not a valid ONNX file');
  await expect(inspectModel(sourceOf(repository, 'add'), 1)).rejects.toThrow('took longer than 1 ms');
});
