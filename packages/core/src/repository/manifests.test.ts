/** The repository on disk: what is found, what is told about faults, and what a digest depends on. */
import { mkdir, mkdtemp, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { FileHashes } from './file-hashes.js';
import { type RepositoryModel, scanRepository, toModelSource } from './manifests.js';

const made: string[] = [];
afterEach(async () => {
  for (const folder of made.splice(0)) await rm(folder, { recursive: true });
});

/** A repository of the given files, by path. */
async function setup(files: Record<string, string>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'remuda-repository-'));
  made.push(root);
  for (const [path, text] of Object.entries(files)) await put(root, path, text);
  return root;
}

async function put(root: string, path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

/** A fresh cache each time, as in another process. */
async function scan(root: string): Promise<RepositoryModel[]> {
  return (await scanRepository(root, new FileHashes())).models;
}

async function only(files: Record<string, string>): Promise<RepositoryModel> {
  const models = await scan(await setup(files));
  expect(models).toHaveLength(1);
  return models[0] as RepositoryModel;
}

const messages = (model: RepositoryModel): string[] => model.problems.map((problem) => problem.message);
const good = { 'm/model.yaml': 'harness: onnx\n', 'm/1/model.onnx': 'one' };

describe('a good model', () => {
  it('is listed with its configuration filled in, and its versions in the order of their numbers', async () => {
    const model = await only({ ...good, 'm/10/model.onnx': 'ten', 'm/2/model.onnx': 'two', 'm/notes/x': '' });
    expect(model.config).toMatchObject({ harness: 'onnx', model_path: 'model.onnx', max_batch_size: 8 });
    expect(model.versions.map((version) => version.version)).toEqual(['1', '2', '10']);
    expect(model.defaultVersion).toBe('10');
    expect(model.problems).toEqual([]);
  });

  it('with a file for each precision loads the one that the rule of the device names', async () => {
    const yaml =
      'harness: onnx\nvariants: {fp16: half.onnx}\naffinity: [{device: cuda, precision: fp16, allow_cpu_fallback: true}, cpu]\n';
    const model = await only({ ...good, 'm/1/half.onnx': 'half', 'm/model.yaml': yaml });
    expect(toModelSource(model, '1', 'cuda:1')).toMatchObject({
      modelFile: 'half.onnx',
      allowCpuFallback: true,
    });
    expect(toModelSource(model, '1', 'cpu').modelFile).toBeUndefined();
    const without = await only({ ...good, 'm/model.yaml': yaml });
    expect(messages(without)).toEqual(['m/1/half.onnx: the model file is missing']);
    expect(without.defaultVersion).toBeNull();
  });

  it('may be reached by links', async () => {
    const root = await setup({ ...good, '.hidden/model.yaml': '', 'README.md': '' });
    await symlink(join(root, 'm'), join(root, 'linked'));
    expect((await scan(root)).map((model) => model.name)).toEqual(['linked', 'm']);
  });

  it('becomes the source of a harness', async () => {
    const model = await only(good);
    expect(toModelSource(model, '1', 'cuda:0')).toEqual({
      modelId: 'm@1',
      model: 'm',
      version: '1',
      digest: model.versions[0]?.digest,
      folder: join(model.folder, '1'),
      config: model.config,
      device: 'cuda:0',
      allowCpuFallback: false,
    });
    expect(() => toModelSource(model, '3', 'cpu')).toThrow('m has no version 3; it has 1');
  });
});

describe('a faulty model', () => {
  it('never hides another', async () => {
    const models = await scan(
      await setup({ ...good, 'bad/model.yaml': '{', 'empty/x': '', 'UP/model.yaml': '' }),
    );
    expect(models.map(({ name, problems }) => [name, problems.map((problem) => problem.kind)])).toEqual([
      ['UP', ['invalid_name']],
      ['bad', ['invalid_yaml']],
      ['empty', ['missing_config']],
      ['m', []],
    ]);
  });

  it('without model.yaml is told what it needs', async () => {
    expect(messages(await only({ 'm/1/model.onnx': '' }))).toEqual([
      'm/model.yaml: missing; a model needs at least "harness: onnx" in it',
    ]);
  });

  it('with invalid YAML is told the line', async () => {
    const model = await only({ 'm/model.yaml': 'harness: onnx\nlabels: {a: b\n' });
    expect(model.problems[0]).toMatchObject({ kind: 'invalid_yaml', line: 3 });
    expect(messages(model)[0]).toMatch(/^m\/model\.yaml:3: invalid YAML: /);
  });

  it('with a key twice is told so', async () => {
    const model = await only({ 'm/model.yaml': 'harness: onnx\nharness: other\n' });
    expect(messages(model)).toEqual(['m/model.yaml:2: invalid YAML: Map keys must be unique']);
  });

  it('with unknown keys is told the near ones, at every depth', async () => {
    const yaml = [
      'harness: onnx',
      'max_batch_siz: 4',
      'colour: blue',
      'padding:',
      '  - input: x',
      '    axis: 1',
      '    multiple: 32',
    ].join('\n');
    const told = messages(await only({ 'm/model.yaml': yaml }));
    expect(told).toContain('m/model.yaml:2: max_batch_siz: unknown key; did you mean "max_batch_size"?');
    expect(told).toContain('m/model.yaml:7: padding[0].multiple: unknown key; did you mean "multiple_of"?');
    expect(told.find((message) => message.includes('colour'))).toMatch(
      /^m\/model\.yaml:3: colour: unknown key; known keys are description, labels, harness, model_path,/,
    );
    expect(told).toHaveLength(3);
  });

  it('with wrong values is told line, path, what was expected and what came', async () => {
    const yaml = 'harness: onnx\nmax_batch_size: 0\nlabels:\n  task: 7\naffinity: [gpu]\nwarmup: [{}]\n';
    expect(messages(await only({ 'm/model.yaml': yaml }))).toEqual([
      'm/model.yaml:4: labels.task: expected a string, received number 7',
      'm/model.yaml:2: max_batch_size: expected at least 1, received number 0',
      'm/model.yaml:5: affinity[0]: expected one of "cpu", "cuda", "tensorrt", "webgpu", "coreml", "dml", received "gpu"',
      'm/model.yaml:6: warmup[0].rows: expected a number, received nothing',
    ]);
    expect(messages(await only({ 'm/model.yaml': '' }))).toEqual([
      'm/model.yaml: the file: expected an object, received null',
    ]);
  });

  it('without versions is told where the model goes', async () => {
    const model = await only({ 'm/model.yaml': 'harness: onnx\nmodel_path: net.onnx', 'm/v1/net.onnx': '' });
    expect(messages(model)).toEqual(['m: has no versions; put the model into 1/net.onnx']);
    expect(model.defaultVersion).toBeNull();
  });

  it('whose newest version lacks its file keeps the one before as the default', async () => {
    const model = await only({ ...good, 'm/2/other.bin': '' });
    expect(model.problems).toMatchObject([{ kind: 'missing_model_file', version: '2' }]);
    expect(messages(model)).toEqual(['m/2/model.onnx: the model file is missing']);
    expect(model.defaultVersion).toBe('1');
    expect(() => toModelSource(model, '2', 'cpu')).toThrow('m@2 cannot be loaded: m/2/model.onnx: the model');
  });

  it('may not reach out of its version folder', async () => {
    const model = await only({ ...good, 'm/model.yaml': 'harness: onnx\nmodel_path: ../1.onnx' });
    expect(messages(model)[0]).toContain('model_path "../1.onnx" leads out of the version folder');
    expect(model.defaultVersion).toBeNull();
  });

  it('whose own harness file is missing is told so', async () => {
    const model = await only({ ...good, 'm/model.yaml': 'harness: ./mine.mjs' });
    expect(messages(model)).toEqual(['m/mine.mjs: missing; model.yaml names it as the harness']);
  });
});

describe('a repository that is not there', () => {
  it('is an error that names the folder', async () => {
    await expect(scanRepository('/no/such/folder')).rejects.toThrow('/no/such/folder cannot be read');
  });
});

describe('a digest', () => {
  const digest = async (files: Record<string, string>): Promise<string> =>
    (await only(files)).versions[0]?.digest as string;

  it('is the same for the same files, whatever the order, the comments and the place', async () => {
    const files = { ...good, 'm/1/golden/a.json': '{}', 'm/1/labels.txt': 'x' };
    const other = Object.fromEntries(Object.entries(files).reverse());
    const plain = { 'm/model.yaml': 'labels: {a: b, c: d}\nharness: onnx' };
    const moved = { 'm/model.yaml': '# the same\nharness: onnx\nlabels: {c: d, a: b}' };
    expect(await digest(files)).toBe(await digest(other));
    expect(await digest({ ...files, ...plain })).toBe(await digest({ ...files, ...moved }));
    expect(await digest({ ...files, 'm/1/.model.onnx.part': 'half' })).toBe(await digest(files));
  });

  it('does not depend on how the version is served, nor on its golden cases', async () => {
    const serving = [
      'max_batch_size: 4',
      'max_queue_delay_ms: 9',
      'timeout_ms: 5',
      'latency_objective_ms: 7',
      'description: other',
      'labels: {a: b}',
      'version_policy: all',
      'load_mode: on_demand',
      'pinned: true',
      'fallback_model: other',
      'instances: 3',
      'intra_op_threads: 2',
      'warmup: [{rows: 2}]',
      'affinity: [cuda, cpu]',
    ];
    const plain = await digest(good);
    for (const line of serving) {
      expect(await digest({ ...good, 'm/model.yaml': `harness: onnx\n${line}` }), line).toBe(plain);
    }
    expect(await digest({ ...good, 'm/1/golden/a.json': '{}' })).toBe(plain);
  });

  it('changes with a byte, a name, a setting that changes the answers and the harness file', async () => {
    const own = { ...good, 'm/model.yaml': 'harness: ./mine.mjs' };
    const all = await Promise.all(
      [
        good,
        { ...good, 'm/1/model.onnx': 'ONE' },
        { ...good, 'm/1/a': 'x' },
        { ...good, 'm/1/b': 'x' },
        { ...good, 'm/1/d/b': 'x' },
        { ...good, 'm/model.yaml': 'harness: onnx\nbatch_axis: {x: 1}' },
        { ...good, 'm/model.yaml': 'harness: onnx\nmodel_kwargs: {a: 1}' },
        { ...good, 'm/model.yaml': 'harness: onnx\nprecision: fp16' },
        { ...own, 'm/mine.mjs': '1' },
        { ...own, 'm/mine.mjs': '2' },
      ].map(digest),
    );
    expect(new Set(all).size).toBe(all.length);
  });

  it('is made from a cached hash while a file is as it was, and anew when it is not', async () => {
    const root = await setup(good);
    const hashes = new FileHashes();
    const path = join(root, 'm/1/model.onnx');
    const first = await hashes.ofFile(path);
    expect(await hashes.ofFile(path)).toBe(first);
    // Same size, same modification time: the change time tells.
    const old = new Date(1_000_000);
    await writeFile(path, 'eno');
    await utimes(path, old, old);
    const second = await hashes.ofFile(path);
    expect(second).not.toBe(first);
    await rename(path, `${path}.2`);
    await writeFile(path, await readFile(`${path}.2`));
    expect(await hashes.ofFile(path)).toBe(second);
  });
});
