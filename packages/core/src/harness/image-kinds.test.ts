import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { joinBytesElements, type RawTensor, splitBytesElements } from '@remuda/schemas';
import { beforeAll, describe, expect, test } from 'vitest';
import { bundledModels, prepareBundled, samples, sourceOf } from '../inference/test-models.fixture.js';
import type { HarnessHooks, InferenceHarness } from './harness.js';
import { floatsOf } from './image-tensors.js';
import { resolveHarness } from './registry.js';

interface Line {
  file: string;
  direction: string;
  text: string;
}
let lines: Line[];

interface Opened {
  harness: InferenceHarness;
  hooks: HarnessHooks;
}

beforeAll(async () => {
  await prepareBundled();
  lines = JSON.parse(await readFile(join(samples, 'expected.json'), 'utf8')).text_lines;
});

async function open(model: string, changes: Record<string, unknown> = {}): Promise<Opened> {
  const { definition, source } = await resolveHarness(sourceOf(bundledModels, model, changes));
  const harness = definition.create();
  const tensors = await harness.load(source);
  await harness.warmUp();
  return { harness, hooks: (await definition.hooks?.(source, tensors)) ?? {} };
}

const images = (files: Uint8Array[]): RawTensor => ({
  name: 'image',
  datatype: 'BYTES',
  shape: [files.length],
  bytes: joinBytesElements(files),
});

async function ask({ harness, hooks }: Opened, files: Uint8Array[]): Promise<Map<string, RawTensor>> {
  const prepared = await hooks.preprocess?.([images(files)], {});
  if (!prepared || 'error' in prepared) throw new Error(prepared?.error.message);
  const outputs = await harness.run(
    { rows: files.length, inputs: prepared.inputs },
    { batchId: 'b', parameters: {} },
  );
  const answer = await hooks.postprocess?.(outputs, {}, prepared.note);
  return new Map(answer?.outputs.map((tensor) => [tensor.name, tensor]));
}

const texts = (tensor: RawTensor | undefined): string[] =>
  tensor ? splitBytesElements(tensor.bytes).map((bytes) => Buffer.from(bytes).toString()) : [];
const read = (line: Line): Promise<Buffer> => readFile(join(samples, line.file));

describe('image-classifier', () => {
  test('says of every sample, all in one batch, which way it stands', async () => {
    const answer = await ask(await open('text-direction'), await Promise.all(lines.map(read)));
    expect(texts(answer.get('label'))).toEqual(lines.map((line) => line.direction));
    const scores = floatsOf(answer.get('score') as RawTensor);
    expect(Math.min(...scores)).toBeGreaterThan(0.9);
    expect(answer.get('probabilities')?.shape).toEqual([lines.length, 2]);
  });

  test('an image that is none refuses its item and says which', async () => {
    const { hooks } = await open('text-direction');
    const good = await read(lines[0] as Line);
    const result = await hooks.preprocess?.([images([good, Buffer.from('no image')])], {});
    expect(result).toMatchObject({
      error: { code: 'item_rejected', message: expect.stringContaining('image 1 could not be decoded') },
    });
    const cut = await hooks.preprocess?.([images([good.subarray(0, good.length / 2)])], {});
    expect(cut).toHaveProperty('error');
  });

  test('labels that do not fit the model fail the load', async () => {
    const { model_kwargs } = sourceOf(bundledModels, 'text-direction').config;
    const three = { model_kwargs: { ...model_kwargs, labels: ['a', 'b', 'c'] } };
    await expect(open('text-direction', three)).rejects.toThrow(
      'labels has 3 names, the model has 2 classes',
    );
  });
});

describe('text-recogniser', () => {
  test('reads every upright sample', async () => {
    const recogniser = await open('text-recognition');
    for (const line of lines.filter((candidate) => candidate.direction === '0')) {
      const answer = await ask(recogniser, [await read(line)]);
      expect(texts(answer.get('text'))).toEqual([line.text]);
      expect(floatsOf(answer.get('score') as RawTensor)[0]).toBeGreaterThan(0.8);
    }
  });
});
