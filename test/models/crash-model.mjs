// Writes the model whose process is killed on a marked input: `crash-on-mark`, an identity (x → y, fp32 [N, D]) with a
// harness of its own that sends SIGKILL to its process when any row has x[i, 0] == 777. A plain ONNX file cannot do
// that portably. `await makeCrashModel(dir)`, or `node test/models/crash-model.mjs DIR`.

import { pathToFileURL } from 'node:url';
import { beforeEachRun, layHarnessedIdentity } from './harnessed-identity.mjs';

const CONFIG = `description: Kills its process on a marked input, as a native crash would.
harness: ./harness.mjs
max_batch_size: 32
max_queue_delay_ms: 20
warmup: []
`;

const HARNESS = beforeEachRun({
  but: 'one input',
  head: `const MARK = 777;
`,
  before: ["if (isMarked(batch)) process.kill(process.pid, 'SIGKILL');"],
  tail: `
function isMarked({ rows, inputs: [x] }) {
  const view = new DataView(x.bytes.buffer, x.bytes.byteOffset, x.bytes.byteLength);
  const rowBytes = x.bytes.byteLength / rows;
  for (let row = 0; row < rows; row++) if (view.getFloat32(row * rowBytes, true) === MARK) return true;
  return false;
}
`,
});

/** Lays <dir>/crash-on-mark. */
export function makeCrashModel(dir) {
  return layHarnessedIdentity(dir, { name: 'crash-on-mark', config: CONFIG, harness: HARNESS });
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await makeCrashModel(process.argv[2] ?? '.');
}
