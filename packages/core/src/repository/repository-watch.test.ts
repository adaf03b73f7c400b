import { mkdir, mkdtemp, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RepositoryWatch } from './repository-watch.js';

let root: string;
let watch: RepositoryWatch;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'remuda-watch-'));
  for (const model of ['a', 'b']) {
    await put(`${model}/model.yaml`, 'harness: onnx\n');
    await put(`${model}/1/model.onnx`, 'one');
  }
  watch = new RepositoryWatch(root);
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

const look = async (name: string) => (await watch.look()).get(name);
const versionsOf = async (name: string) => (await look(name))?.versions.map(({ version }) => version);

it('a model in which nothing has changed is the same object', async () => {
  const first = await watch.look();
  const second = await watch.look();
  expect(second.get('a')).toBe(first.get('a'));
  expect([...second.keys()]).toEqual(['a', 'b']);
});

it('a file with other content is read again, and only its model', async () => {
  const first = await watch.look();
  await put('a/1/model.onnx', 'other');
  const second = await watch.look();
  expect(second.get('a')?.versions[0]?.digest).not.toBe(first.get('a')?.versions[0]?.digest);
  expect(second.get('b')).toBe(first.get('b'));
});

it('content of the same size and time is noticed', async () => {
  const at = new Date(1_000_000_000_000);
  await utimes(join(root, 'a/1/model.onnx'), at, at);
  const before = await look('a');
  await put('a/1/model.onnx', 'eno');
  await utimes(join(root, 'a/1/model.onnx'), at, at);
  expect((await look('a'))?.versions[0]?.digest).not.toBe(before?.versions[0]?.digest);
});

it('settings that change give another configuration of the same digest', async () => {
  const before = await look('a');
  await put('a/model.yaml', 'harness: onnx\nmax_batch_size: 3\n');
  const after = await look('a');
  expect(after?.config?.max_batch_size).toBe(3);
  expect(after?.versions[0]?.digest).toBe(before?.versions[0]?.digest);
});

it('versions and models that come and go are seen', async () => {
  await watch.look();
  await put('.hidden/model.onnx', 'two');
  await rename(join(root, '.hidden'), join(root, 'a/2'));
  await put('c/model.yaml', 'harness: onnx\n');
  expect(await versionsOf('a')).toEqual(['1', '2']);
  expect([...(await watch.look()).keys()]).toEqual(['a', 'b', 'c']);
  await rm(join(root, 'a/1'), { recursive: true });
  await rm(join(root, 'b'), { recursive: true });
  expect(await versionsOf('a')).toEqual(['2']);
  expect([...(await watch.look()).keys()]).toEqual(['a', 'c']);
});

it('a fault is told with the model, goes when it is put right, and hides no other', async () => {
  await watch.look();
  await put('a/model.yaml', 'harness: onnx\nmax_batch: 3\n');
  expect((await look('a'))?.problems[0]?.message).toContain('a/model.yaml:2: max_batch');
  expect((await look('b'))?.problems).toEqual([]);
  await put('a/model.yaml', 'harness: onnx\n');
  expect((await look('a'))?.problems).toEqual([]);
});

it('a folder that cannot be read is an error that names it', async () => {
  await rm(root, { recursive: true });
  await expect(watch.look()).rejects.toThrow(`the model repository ${root} cannot be read`);
});
