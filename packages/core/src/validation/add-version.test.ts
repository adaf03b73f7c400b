import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeModels } from '../inference/test-models.fixture.js';
import { scanRepository, toModelSource } from '../repository/manifests.js';
import { addVersion } from './add-version.js';
import { diffVersions } from './diff-versions.js';

let models: string;
let repository: string;
beforeAll(async () => {
  models = await makeModels();
});
afterAll(() => rmSync(models, { recursive: true, force: true }));
beforeEach(() => {
  repository = mkdtempSync(join(tmpdir(), 'remuda-add-'));
  return () => rmSync(repository, { recursive: true, force: true });
});

const file = (name: string): string => join(models, name, '1/model.onnx');

describe('a version that is added', () => {
  it('begins a model with a model.yaml of its own, where a bare file is new', async () => {
    const added = await addVersion(file('variable-length'), { repository, name: 'doubler' });
    expect(added).toMatchObject({ added: true, newModel: true, folder: join(repository, 'doubler/1') });
    expect(readFileSync(join(repository, 'doubler/model.yaml'), 'utf8')).toMatch(/max_batch_size: 8/);
    const { models: found } = await scanRepository(repository);
    expect(found).toMatchObject([{ name: 'doubler', defaultVersion: '1', problems: [] }]);
    expect(found[0]?.versions[0]?.digest).toBe(added.digest);
    expect(readdirSync(repository)).toEqual(['doubler']);
  });

  it('is the next of its model, by the settings that this has, golden cases with it', async () => {
    cpSync(join(models, 'variable-length'), join(repository, 'doubler'), { recursive: true });
    const next = join(repository, '../', `${Date.now()}-next`);
    mkdirSync(join(next, 'golden'), { recursive: true });
    cpSync(file('variable-length'), join(next, 'model.onnx'));
    const golden = { inputs: { x: [[1]] }, outputs: { y: { datatype: 'FP32', shape: [1, 1], data: [2] } } };
    writeFileSync(join(next, 'golden/one.json'), JSON.stringify(golden));
    const before = readFileSync(join(repository, 'doubler/model.yaml'), 'utf8');
    expect(await addVersion(next, { repository, name: 'doubler' })).toMatchObject({
      added: true,
      version: '2',
      newModel: false,
    });
    rmSync(next, { recursive: true });
    expect(readFileSync(join(repository, 'doubler/model.yaml'), 'utf8')).toBe(before);
    expect(existsSync(join(repository, 'doubler/2/golden/one.json'))).toBe(true);
  });

  it('comes with the model.yaml of its folder, where the model is new', async () => {
    const added = await addVersion(join(models, 'batch-axis-1'), { repository });
    expect(added).toMatchObject({ added: true, model: 'batch-axis-1', newModel: true });
    expect(readFileSync(join(repository, 'batch-axis-1/model.yaml'), 'utf8')).toBe(
      readFileSync(join(models, 'batch-axis-1/model.yaml'), 'utf8'),
    );
  });

  it('is not added where it does not pass, and leaves nothing behind', async () => {
    for (const name of ['corrupt', 'centre-over-batch']) {
      const added = await addVersion(join(models, name), { repository });
      expect(added.added).toBe(false);
      expect(
        added.findings
          .filter(({ status }) => status === 'fail')
          .map(({ detail }) => detail)
          .join(),
      ).not.toContain('.adding');
    }
    expect(readdirSync(repository)).toEqual([]);
  });

  it('never replaces one that is there', async () => {
    cpSync(join(models, 'add'), join(repository, 'add'), { recursive: true });
    await expect(addVersion(file('add'), { repository, name: 'add', version: '1' })).rejects.toThrow(
      'has a version 1 already',
    );
    await expect(addVersion(file('add'), { repository, name: 'Bad Name' })).rejects.toThrow(
      'no name of a model',
    );
  });
});

describe('the difference of two versions', () => {
  async function sourcesOf(first: string, second: string) {
    cpSync(join(models, first), join(repository, 'm'), { recursive: true });
    cpSync(join(models, second, '1'), join(repository, 'm/2'), { recursive: true });
    const [model] = (await scanRepository(repository)).models;
    if (!model) throw new Error('no model');
    return [toModelSource(model, '1', 'cpu'), toModelSource(model, '2', 'cpu')] as const;
  }

  it('is nothing but the digest for the same file twice', async () => {
    const [a, b] = await sourcesOf('variable-length', 'variable-length');
    expect(await diffVersions(a, b)).toMatchObject({
      files: [],
      config: [],
      signature: [],
      outputs: [{ output: 'y', maxAbsError: 0, maxRelError: 0, top1: { changed: 0 } }],
      unanswered: null,
      inputs: 'synthetic',
    });
  });

  it('names files, tensors, and how far the answers are apart', async () => {
    const [a, b] = await sourcesOf('variable-length', 'identity-fp32');
    const found = await diffVersions(a, b);
    expect(found.files.map(({ what }) => what)).toEqual(['model.onnx']);
    expect(found.signature.map(({ what }) => what)).toEqual(['input x', 'output y']);
    // 2 x against x.
    expect(found.outputs?.[0]?.maxRelError).toBeCloseTo(0.5);
  });

  it('says why answers could not be compared', async () => {
    const [a, b] = await sourcesOf('identity-fp32', 'add');
    const found = await diffVersions(a, b);
    expect(found.outputs).toBeNull();
    expect(found.unanswered).toMatch(/input "a" is missing/);
  });

  it('needs both to load', async () => {
    const [a, b] = await sourcesOf('identity-fp32', 'corrupt');
    await expect(diffVersions(a, b)).rejects.toThrow('not a valid ONNX file');
  });
});
