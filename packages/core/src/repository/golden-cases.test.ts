import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SignatureTensor } from '@remuda/schemas';
import { afterEach, expect, test } from 'vitest';
import { readGoldenCases } from './golden-cases.js';

const made: string[] = [];
afterEach(async () => {
  for (const folder of made.splice(0)) await rm(folder, { recursive: true });
});

const tensor = (
  name: string,
  shape: SignatureTensor['shape'],
  kind: 'tensor' | 'image',
): SignatureTensor => ({
  name,
  datatype: kind === 'image' ? 'BYTES' : 'FP32',
  shape,
  batch_axis: 0,
  kind,
});
const signature = {
  model: 'm',
  inputs: [tensor('x', ['N', 'D'], 'tensor')],
  outputs: [tensor('y', ['N', 'D'], 'tensor')],
  parameters_schema: null,
};

/** A version folder with these files under golden/. */
async function setup(files: Record<string, string | object>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'remuda-golden-'));
  made.push(folder);
  await mkdir(join(folder, 'golden'));
  for (const [name, content] of Object.entries(files)) {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    await writeFile(join(folder, 'golden', name), text);
  }
  return folder;
}

const y = (shape: number[], ...data: number[]) => ({ y: { datatype: 'FP32', shape, data } });

test('cases are read by name, with bare values, parameters and the tolerance filled in', async () => {
  const folder = await setup({
    'b.json': { inputs: { x: [[1, 2]] }, outputs: y([1, 2], 1, 2), tolerance: { rel: 0 } },
    'a.json': {
      description: 'one row',
      inputs: { x: { datatype: 'FP32', shape: [1, 1], data: [3] } },
      parameters: { beam: 4 },
      model_extra: { steps: 3 },
    },
    'notes.txt': 'not a case',
    '.c.json': 'not yet a case',
  });
  const parameters_schema = { type: 'object', properties: { beam: { type: 'number' } } };
  const cases = await readGoldenCases(folder, { ...signature, parameters_schema });
  expect(cases).toMatchObject([
    {
      file: 'golden/a.json',
      description: 'one row',
      parameters: { beam: 4 },
      modelExtra: { steps: 3 },
      outputs: [],
    },
    { file: 'golden/b.json', description: '', modelExtra: null, tolerance: { abs: 1e-4, rel: 0 } },
  ]);
  expect(cases[1]?.inputs).toMatchObject([{ name: 'x', datatype: 'FP32', shape: [1, 2] }]);
  expect(cases[1]?.outputs).toMatchObject([{ name: 'y', datatype: 'FP32', shape: [1, 2] }]);
});

test('an image input is the bytes of a file beside the case', async () => {
  const folder = await setup({
    'a.json': { inputs: { image: { file: 'line.png' } }, outputs: y([1, 1], 1) },
  });
  await writeFile(join(folder, 'golden', 'line.png'), 'PNG');
  const image = { ...signature, inputs: [tensor('image', ['N'], 'image')] };
  const [golden] = await readGoldenCases(folder, image);
  expect(golden?.inputs).toMatchObject([{ name: 'image', datatype: 'BYTES', shape: [1] }]);
  expect(Buffer.from(golden?.inputs[0]?.bytes ?? []).toString()).toContain('PNG');
});

test('a version without a golden folder has none', async () => {
  expect(await readGoldenCases('/no/such/version', signature)).toEqual([]);
});

const good = { inputs: { x: [[1]] }, outputs: y([1, 1], 1) };
test.each([
  ['{', 'the file: expected valid JSON'],
  [{ ...good, output: {} }, 'output: expected no such key'],
  [{ inputs: good.inputs }, 'the file: expected at least one expected output'],
  [{ ...good, tolerance: { abs: -1 } }, 'tolerance.abs: expected at least 0'],
  [{ ...good, inputs: { z: [[1]] } }, 'inputs.z: expected "x"'],
  [{ ...good, inputs: { x: [[[1]]] } }, 'inputs.x: expected arrays nested 2 deep'],
  [
    { ...good, outputs: { q: y([1, 1], 1).y } },
    'outputs.q: expected one of "y", received an unknown output "q"',
  ],
  [
    { ...good, outputs: { y: { datatype: 'INT64', shape: [1, 1], data: [1] } } },
    'outputs.y.datatype: expected FP32, received INT64',
  ],
  [{ ...good, outputs: y([1], 1) }, 'outputs.y.shape: expected [N, D], received [1]'],
  [{ ...good, outputs: y([1, 2], 1) }, 'outputs.y.data: expected 2 elements'],
  [
    { ...good, inputs: { x: { file: '../x.png' } } },
    'inputs.x.file: expected a path inside the golden folder',
  ],
  [{ ...good, inputs: { x: { file: 3 } } }, 'inputs.x.file: expected a string, received number 3'],
  [{ ...good, inputs: { x: { file: 'no.png' } } }, 'inputs.x.file: expected a file in the golden folder'],
  [{ ...good, inputs: { x: { file: 'a.json' } } }, 'inputs.x: expected FP32 [N, D], received an image file'],
  [{ ...good, parameters: { beam: 2 } }, 'parameters.beam: expected no parameters: m takes none'],
])('%j is refused by file and path', async (content, message) => {
  const folder = await setup({ 'a.json': content });
  await expect(readGoldenCases(folder, signature)).rejects.toMatchObject({
    code: 'golden_mismatch',
    message: expect.stringContaining(`golden/a.json: ${message}`),
  });
});
