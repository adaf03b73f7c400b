import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { makeModels, sourceOf } from '../inference/test-models.fixture.js';
import { knownKinds, resolveHarness } from './registry.js';

let repository: string;
beforeAll(async () => {
  repository = await makeModels();
});

const resolve = (changes: Record<string, unknown>) => resolveHarness(sourceOf(repository, 'add', changes));

test('the kinds are the files of the folder', () => {
  expect(knownKinds()).toEqual(['image-classifier', 'onnx', 'text-recogniser']);
});

test('an unknown name lists the known ones', async () => {
  await expect(resolve({ harness: 'onx' })).rejects.toThrow(
    'add@1: there is no harness "onx"; known are image-classifier, onnx, text-recogniser',
  );
});

test('unknown and wrong model_kwargs are named', async () => {
  await expect(resolve({ model_kwargs: { spinn: true } })).rejects.toThrow(
    'model_kwargs.spinn: expected no such key',
  );
  await expect(resolve({ model_kwargs: { spin: 1 } })).rejects.toThrow('model_kwargs.spin: expected ');
});

test('defaults of model_kwargs are filled in', async () => {
  const model_kwargs = { width: 10, height: 10, labels: ['a'] };
  const { source } = await resolve({ harness: 'image-classifier', model_kwargs });
  expect(source.config.model_kwargs).toMatchObject({
    channels: 'rgb',
    resize: 'stretch',
    activation: 'none',
  });
});

test('a file beside model.yaml builds on a built-in kind', async () => {
  const { definition } = await resolveHarness(sourceOf(repository, 'crash-on-mark'));
  expect(definition.create().isLoaded).toBe(false);
});

test('a file that is missing, elsewhere or exports nothing is refused', async () => {
  await writeFile(join(repository, 'add', 'empty.mjs'), 'export const other = 1;');
  await expect(resolve({ harness: './no.mjs' })).rejects.toThrow(/harness file .*add\/no\.mjs is missing/);
  await expect(resolve({ harness: '../add/empty.mjs' })).rejects.toThrow(
    'must be a kind\'s name or "./file.mjs"',
  );
  await expect(resolve({ harness: './empty.mjs' })).rejects.toThrow('must export "definition"');
});
