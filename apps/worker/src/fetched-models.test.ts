import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '@remuda/core/lifecycle/clock';
import { silentLogger } from '@remuda/core/observability/logger';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FetchedModels } from './fetched-models.js';

let root: string;
let aheadMs: number;
let heard: () => void;
let models: FetchedModels;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'remuda-fetched-'));
  aheadMs = 0;
  heard = () => {};
  models = new FetchedModels({
    cacheFolder: join(root, 'cache'),
    secret: () => undefined,
    clock: { ...systemClock, now: () => Date.now() + aheadMs },
    logger: silentLogger,
    onFetched: () => heard(),
  });
});
afterEach(async () => {
  models.stop();
  await rm(root, { recursive: true });
});

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

const source = (name = 'm') => ({ type: 'local', path: join(root, name) });

/** Looks, and waits for the fetch that this begins. */
async function fetched(spec = source()) {
  const done = new Promise<void>((resolve) => {
    heard = resolve;
  });
  const meanwhile = await models.look('m', spec);
  await done;
  return { meanwhile, after: await models.look('m', spec) };
}

it('a model is being fetched at the first look, and there at the next', async () => {
  await put('m/model.yaml', 'harness: onnx\n');
  await put('m/1/model.onnx', 'one');
  const { meanwhile, after } = await fetched();
  expect(meanwhile).toMatchObject({ config: null, problems: [{ kind: 'fetching' }] });
  expect(after).toMatchObject({ config: { harness: 'onnx' }, problems: [], versions: [{ version: '1' }] });
});

it('a source that cannot be fetched says why, and is asked again after a pause', async () => {
  const { after } = await fetched();
  expect(after.problems).toMatchObject([
    { kind: 'unreadable', message: expect.stringMatching(/^m: the source of m/) },
  ]);
  await put('m/model.yaml', 'harness: onnx\n');
  await put('m/1/model.onnx', 'one');
  expect((await models.look('m', source())).config).toBeNull();
  aheadMs = 2_000;
  expect((await fetched()).after.versions).toHaveLength(1);
});

it('what was fetched serves on while its source is away', async () => {
  await put('m/model.yaml', 'harness: onnx\n');
  await put('m/1/model.onnx', 'one');
  await fetched();
  aheadMs = 60_000;
  const { after } = await fetched(source('gone'));
  expect(after.versions).toHaveLength(1);
});
