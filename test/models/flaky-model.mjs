// Writes the model that fails for a while: `flaky`, an identity (x → y, fp32 [N, D]) whose runs throw as long as a row
// with x[i, 0] == 13 has not failed x[i, 1] times in this process. Its failures are tried again, as its retries say.
// `await makeFlakyModel(dir)`, or `node test/models/flaky-model.mjs DIR`.

import { pathToFileURL } from 'node:url';
import { beforeEachRun, layHarnessedIdentity } from './harnessed-identity.mjs';

const CONFIG = `description: Fails as often as x[i, 1] says where x[i, 0] is 13.
harness: ./harness.mjs
max_batch_size: 8
warmup: []
retries:
  model: { attempts: 3, first_ms: 10, max_ms: 20 }
`;

const HARNESS = beforeEachRun({
  but: 'rows that fail for a while',
  head: `const failures = new Map();
`,
  before: [
    '// Counted where the row runs alone: a batch that fails is halved first.',
    'if (batch.rows === 1) count(batch);',
    "if (marked(batch).some((key) => left(key) > 0)) throw new Error('a flaky row');",
  ],
  tail: `
function marked({ rows, inputs: [x] }) {
  const view = new DataView(x.bytes.buffer, x.bytes.byteOffset, x.bytes.byteLength);
  const rowBytes = x.bytes.byteLength / rows;
  const at = (row, column) => view.getFloat32(row * rowBytes + column * 4, true);
  const keys = [];
  for (let row = 0; row < rows; row++) if (at(row, 0) === 13) keys.push([at(row, 1), at(row, 2)].join(' '));
  return keys;
}

function count(batch) {
  for (const key of marked(batch)) failures.set(key, (failures.get(key) ?? 0) + 1);
}

/** Times that it still fails, this one included. */
function left(key) {
  return Number(key.split(' ')[0]) + 1 - (failures.get(key) ?? 0);
}
`,
});

/** Lays <dir>/flaky. */
export function makeFlakyModel(dir) {
  return layHarnessedIdentity(dir, { name: 'flaky', config: CONFIG, harness: HARNESS });
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await makeFlakyModel(process.argv[2] ?? '.');
}
