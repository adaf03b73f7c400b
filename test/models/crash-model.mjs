// Writes the model whose process is killed on a marked input: `crash-on-mark`, an identity (x → y, fp32 [N, D]) with a
// harness of its own that sends SIGKILL to its process when any row has x[i, 0] == 777. A plain ONNX file cannot do
// that portably. `await makeCrashModel(dir)`, or `node test/models/crash-model.mjs DIR`.

import { access, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { makeTestModels } from './make-models.mjs';

const CONFIG = `description: Kills its process on a marked input, as a native crash would.
harness: ./harness.mjs
max_batch_size: 32
max_queue_delay_ms: 20
warmup: []
`;

const HARNESS = `// The onnx kind, but for one input.
const MARK = 777;

export async function definition({ kind }) {
  const onnx = await kind('onnx');
  return {
    ...onnx,
    create() {
      const harness = onnx.create();
      const run = harness.run.bind(harness);
      harness.run = async (batch, context) => {
        if (isMarked(batch)) process.kill(process.pid, 'SIGKILL');
        return run(batch, context);
      };
      return harness;
    },
  };
}

function isMarked({ rows, inputs: [x] }) {
  const view = new DataView(x.bytes.buffer, x.bytes.byteOffset, x.bytes.byteLength);
  const rowBytes = x.bytes.byteLength / rows;
  for (let row = 0; row < rows; row++) if (view.getFloat32(row * rowBytes, true) === MARK) return true;
  return false;
}
`;

/** Lays <dir>/crash-on-mark; takes the graph of identity-fp32, which it makes if it is not there. */
export async function makeCrashModel(dir) {
  const identity = join(dir, 'identity-fp32/1/model.onnx');
  const known = await access(identity).then(
    () => true,
    () => false,
  );
  if (!known) await makeTestModels(dir);
  const folder = join(dir, 'crash-on-mark');
  await mkdir(join(folder, '1'), { recursive: true });
  await writeFile(join(folder, 'model.yaml'), CONFIG);
  await writeFile(join(folder, 'harness.mjs'), HARNESS);
  await copyFile(identity, join(folder, '1/model.onnx'));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await makeCrashModel(process.argv[2] ?? '.');
}
