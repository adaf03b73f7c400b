import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Datatype, ELEMENT_BYTES, joinBytesElements, type RawTensor } from '@remuda/schemas';
import { beforeAll, describe, expect, test } from 'vitest';
import { makeModels, sourceOf } from '../inference/test-models.fixture.js';
import { definition, OnnxHarness } from './kinds/onnx.js';

let repository: string;
beforeAll(async () => {
  repository = await makeModels();
});

async function loaded(model: string, changes: Record<string, unknown> = {}): Promise<OnnxHarness> {
  const harness = new OnnxHarness();
  await harness.load(sourceOf(repository, model, changes));
  return harness;
}

const floats = (name: string, shape: number[], ...values: number[]): RawTensor => ({
  name,
  datatype: 'FP32',
  shape,
  bytes: new Uint8Array(Float32Array.from(values).buffer),
});
const numbers = (tensor: RawTensor | undefined): number[] =>
  tensor ? [...new Float32Array(new Uint8Array(tensor.bytes).buffer)] : [];

describe('tensors', () => {
  test.each(Object.keys(ELEMENT_BYTES) as Datatype[])(
    '%s goes in and comes out unchanged',
    async (datatype) => {
      const harness = await loaded(`identity-${datatype.toLowerCase()}`);
      const bytes =
        datatype === 'BYTES'
          ? joinBytesElements(['a', '', 'ünï'].map((text) => Buffer.from(text)))
          : Uint8Array.from({ length: 3 * ELEMENT_BYTES[datatype] }, (_, i) =>
              datatype === 'BOOL' ? i % 2 : 60 + i,
            );
      const [y] = await harness.run({ rows: 3, inputs: [{ name: 'x', datatype, shape: [3, 1], bytes }] });
      expect(y).toMatchObject({ name: 'y', datatype, shape: [3, 1] });
      expect([...(y?.bytes ?? [])]).toEqual([...bytes]);
      await harness.unload();
    },
  );

  test('a scalar without a batch axis is shared by all rows', async () => {
    const harness = await loaded('scale');
    const inputs = [floats('x', [2, 4], 1, 2, 3, 4, 5, 6, 7, 8), floats('factor', [], 10)];
    const [y] = await harness.run({ rows: 2, inputs });
    expect(numbers(y)).toEqual([10, 20, 30, 40, 50, 60, 70, 80]);
  });

  test('inputs the model has not, and missing ones, are refused by name', async () => {
    const harness = await loaded('add');
    const run = harness.run({
      rows: 1,
      inputs: [floats('a', [1, 4], 1, 2, 3, 4), floats('c', [1, 4], 1, 2, 3, 4)],
    });
    await expect(run).rejects.toThrow('the model takes a, b; not c; missing b');
  });

  test('an output without a row for each row given is an error that names it', async () => {
    const harness = await loaded('mean-over-batch');
    const run = harness.run({ rows: 2, inputs: [floats('x', [2, 4], 1, 2, 3, 4, 5, 6, 7, 8)] });
    await expect(run).rejects.toMatchObject({
      code: 'output_mismatch',
      details: { output: 'y', axis: 0, got: 1, expected: 2 },
    });
  });

  test('a failed kernel leaves the session usable', async () => {
    const harness = await loaded('fail-on-mark');
    const bad = harness.run({ rows: 1, inputs: [floats('x', [1, 4], 666, 0, 0, 0)] });
    await expect(bad).rejects.toMatchObject({ code: 'inference_failed' });
    const [y] = await harness.run({ rows: 1, inputs: [floats('x', [1, 4], 1, 2, 3, 4)] });
    expect(numbers(y)).toEqual([1, 2, 3, 4]);
  });
});

describe('loading', () => {
  const load = (model: string, changes: Record<string, unknown> = {}) => loaded(model, changes);

  test.each([
    ['corrupt', /corrupt\/1\/model\.onnx cannot be loaded: it is not a valid ONNX file/],
    ['future-opset', /it needs opset 99 of ai\.onnx; this runtime supports up to \d+/],
    ['missing-file', /the model file .*missing-file\/1\/model\.onnx is missing/],
  ])('%s says which file and why', async (model, message) => {
    await expect(load(model)).rejects.toMatchObject({
      code: 'model_load_failed',
      message: expect.stringMatching(message),
    });
  });

  test('a batch_axis that the model cannot have is refused', async () => {
    await expect(load('add', { batch_axis: { z: 0 } })).rejects.toThrow(
      'batch_axis names "z"; the model has a, b, sum',
    );
    await expect(load('add', { batch_axis: { a: 2 } })).rejects.toThrow('but it has 2 axes');
  });

  test('a provider that is not there is an error, never a silent CPU', async () => {
    const harness = new OnnxHarness();
    const source = { ...sourceOf(repository, 'add'), device: 'coreml' };
    await expect(harness.load(source)).rejects.toThrow(/no execution provider "coreml".*has cpu/);
    expect(harness.isLoaded).toBe(false);
  });

  test('another file of the version may be loaded in place of model_path', async () => {
    const source = { ...sourceOf(repository, 'identity-fp32'), modelFile: 'model.fp16.onnx' };
    const harness = new OnnxHarness();
    await expect(harness.load(source)).rejects.toThrow(/identity-fp32\/1\/model\.fp16\.onnx is missing/);
    await copyFile(join(repository, 'identity-fp16/1/model.onnx'), join(source.folder, source.modelFile));
    expect(await harness.load(source)).toMatchObject({ inputs: [{ name: 'x', datatype: 'FP16' }] });
    await harness.unload();
  });

  test('run and warm-up need a loaded model; unload may be called twice', async () => {
    const harness = await loaded('add');
    await harness.warmUp();
    await harness.unload();
    await harness.unload();
    await expect(harness.run({ rows: 1, inputs: [] })).rejects.toMatchObject({ name: 'ModelNotLoadedError' });
    await expect(harness.warmUp()).rejects.toMatchObject({ name: 'ModelNotLoadedError' });
  });
});

test('text that ONNX Runtime would cut or change refuses its item', async () => {
  const source = sourceOf(repository, 'identity-bytes');
  const tensors = await new OnnxHarness().load(source);
  const hooks = await definition.hooks?.(source, tensors);
  const text = (bytes: number[]): RawTensor => ({
    name: 'x',
    datatype: 'BYTES',
    shape: [1, 1],
    bytes: joinBytesElements([Uint8Array.from(bytes)]),
  });
  const reasons = [[97, 0, 98], [0xff], [97]].map(async (bytes) => {
    const result = await hooks?.preprocess?.([text(bytes)], {});
    return result && 'error' in result ? result.error.message : 'taken';
  });
  expect(await Promise.all(reasons)).toEqual([
    'input "x", element 0: text for an ONNX model cannot hold NUL',
    'input "x", element 0: text for an ONNX model must be valid UTF-8',
    'taken',
  ]);
});
