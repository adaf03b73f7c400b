/** Models tried as they lie: each case is a real file in a real process. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeModels } from '../inference/test-models.fixture.js';
import { isValid, validatePath } from './validate-path.js';

let models: string;
let folder: string;
beforeAll(async () => {
  models = await makeModels();
  folder = mkdtempSync(join(tmpdir(), 'remuda-validate-'));
});
afterAll(() => {
  for (const path of [models, folder]) rmSync(path, { recursive: true, force: true });
});

async function findingsOf(path: string) {
  const found = await validatePath(path);
  const details = Object.fromEntries(
    found.findings.map(({ check, status, detail, remedy }) => [
      check,
      `${status} ${detail} ${remedy ?? ''}`.trim(),
    ]),
  );
  return { found, details };
}

describe('a model that is validated', () => {
  it('is loaded, inspected and tried in batches: rows that answer as alone may share a run', async () => {
    const { found, details } = await findingsOf(join(models, 'add'));
    expect(isValid(found)).toBe(true);
    expect(details.takes).toBe('ok a: FP32 [N, 4], batch axis 0; b: FP32 [N, 4], batch axis 0');
    expect(details.batching).toMatch(/^ok may be batched: 8 rows in one run answer as alone/);
    expect(details.golden).toMatch(/^warn no golden cases: .*golden\/<name>\.json/);
  });

  it('must not be batched where it mixes its rows, though shapes and axes are right', async () => {
    const { found, details } = await findingsOf(join(models, 'centre-over-batch'));
    expect(isValid(found)).toBe(false);
    expect(details.batching).toMatch(
      /^fail must not be batched: .*"y": 4 of 4 elements differ.*Set max_batch_size: 1/,
    );
  });

  it('must not be batched where the output has another number of rows', async () => {
    const { details } = await findingsOf(join(models, 'mean-over-batch'));
    expect(details.batching).toMatch(
      /^fail must not be batched: .*fails in a batch and not alone.*expected 8/,
    );
  });

  it('passes with max_batch_size 1 where it must not be batched', async () => {
    const path = join(folder, 'alone');
    mkdirSync(join(path, '1'), { recursive: true });
    copyFileSync(join(models, 'centre-over-batch/1/model.onnx'), join(path, '1/model.onnx'));
    writeFileSync(join(path, 'model.yaml'), 'harness: onnx\nmax_batch_size: 1\n');
    const { found, details } = await findingsOf(path);
    expect(isValid(found)).toBe(true);
    expect(details.batching).toMatch(/^ok must not be batched.*max_batch_size is 1, so it is not$/);
  });

  it('runs one by one without a batch axis', async () => {
    const { details } = await findingsOf(join(models, 'fixed-batch'));
    expect(details.batching).toBe('ok no input has a batch axis: rows run one by one');
  });

  it('fails where its golden cases do not hold, and is tried in batches all the same', async () => {
    const path = join(folder, 'wrong');
    mkdirSync(join(path, '1/golden'), { recursive: true });
    copyFileSync(join(models, 'variable-length/1/model.onnx'), join(path, '1/model.onnx'));
    writeFileSync(join(path, 'model.yaml'), 'harness: onnx\n');
    const golden = {
      inputs: { x: [[1, 2]] },
      outputs: { y: { datatype: 'FP32', shape: [1, 2], data: [2, 5] } },
    };
    writeFileSync(join(path, '1/golden/doubles.json'), JSON.stringify(golden));
    const { found, details } = await findingsOf(path);
    expect(isValid(found)).toBe(false);
    expect(details.golden).toMatch(/^fail .*golden\/doubles\.json.*1 of 2 elements differ/);
    expect(details.batching).toMatch(/^ok may be batched/);

    golden.outputs.y.data = [2, 4];
    writeFileSync(join(path, '1/golden/doubles.json'), JSON.stringify(golden));
    expect((await findingsOf(path)).details.golden).toBe('ok 1 golden cases hold, max abs error 0');
  });

  it('that cannot be loaded says which file and why, by the path that was given', async () => {
    const { found, details } = await findingsOf(join(models, 'corrupt'));
    expect(isValid(found)).toBe(false);
    expect(details.load).toContain(
      `${join(models, 'corrupt/1/model.onnx')} cannot be loaded: it is not a valid ONNX file`,
    );
    expect((await findingsOf(join(models, 'missing-file'))).details.files).toMatch(/model file is missing/);
  });

  it('may be a bare file: a model.yaml is suggested that says whether it may be batched', async () => {
    const [good, mixing] = await Promise.all(
      ['variable-length', 'centre-over-batch'].map((name) =>
        validatePath(join(models, name, '1/model.onnx')),
      ),
    );
    expect(good?.suggestedConfig).toMatch(/^harness: onnx\nmax_batch_size: 8 #.*\nwarmup: .*"L": 32/);
    expect(mixing?.suggestedConfig).toMatch(/max_batch_size: 1 # in a batch its rows change each other/);
  });

  it('must be there', async () => {
    await expect(validatePath(join(folder, 'nowhere'))).rejects.toThrow('no such file or folder');
    await expect(validatePath(folder)).rejects.toThrow('no model.yaml in it or above it');
  });
});
