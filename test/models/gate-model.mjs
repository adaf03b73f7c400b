// Writes the model whose runs a test can hold: `gated`, an identity (x → y, fp32 [N, D]) with a harness of its own whose
// runs wait for as long as the file gated/closed exists. What is to happen "while a batch runs" then does, however fast
// or slow the machine is. `await makeGateModel(dir)`, or `node test/models/gate-model.mjs DIR`.

import { pathToFileURL } from 'node:url';
import { beforeEachRun, layHarnessedIdentity } from './harnessed-identity.mjs';

const CONFIG = `description: Gives back x once the file gated/closed is not there.
harness: ./harness.mjs
max_batch_size: 8
intra_op_threads: 1
timeout_ms: 600000
warmup: []
`;

const HARNESS = beforeEachRun({
  but: 'the gate',
  head: `import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const CLOSED = new URL('./closed', import.meta.url);
`,
  before: ['while (existsSync(CLOSED)) await sleep(5);'],
});

/** Lays <dir>/gated. */
export function makeGateModel(dir) {
  return layHarnessedIdentity(dir, { name: 'gated', config: CONFIG, harness: HARNESS });
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await makeGateModel(process.argv[2] ?? '.');
}
