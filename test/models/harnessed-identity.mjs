// Lays an identity (x → y, fp32 [N, D]) whose runs a harness file of its own changes: what a plain ONNX file cannot do.

import { access, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTestModels } from './make-models.mjs';

/**
 * The text of a harness that is the onnx kind, but for what is done before each run.
 * @param but what is different, behind "The onnx kind, but for"
 * @param before statements over `batch`, on one line each; they may throw or wait
 * @param head imports and constants; tail: functions that `before` calls
 */
export function beforeEachRun({ but, head = '', before, tail = '' }) {
  const steps = before.map((line) => `        ${line}`).join('\n');
  return `// The onnx kind, but for ${but}.
${head}
export async function definition({ kind }) {
  const onnx = await kind('onnx');
  return {
    ...onnx,
    create() {
      const harness = onnx.create();
      const run = harness.run.bind(harness);
      harness.run = async (batch, context) => {
${steps}
        return run(batch, context);
      };
      return harness;
    },
  };
}
${tail}`;
}

/** <dir>/<name> with this model.yaml and harness.mjs; takes the graph of identity-fp32, which it makes if need be. */
export async function layHarnessedIdentity(dir, { name, config, harness }) {
  const identity = join(dir, 'identity-fp32/1/model.onnx');
  const known = await access(identity).then(
    () => true,
    () => false,
  );
  if (!known) await makeTestModels(dir);
  const folder = join(dir, name);
  await mkdir(join(folder, '1'), { recursive: true });
  await writeFile(join(folder, 'model.yaml'), config);
  await writeFile(join(folder, 'harness.mjs'), harness);
  await copyFile(identity, join(folder, '1/model.onnx'));
}
