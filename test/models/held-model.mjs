// Writes the model whose runs can be held on one worker and go on on others: `held`, an identity (x → y, fp32 [N, D])
// whose runs take some 50 ms, and wait for as long as the file held/hold-<pid of the worker> exists. So what one worker
// does while another stands still is settled by the test and not by the speed of the machine. `await
// makeHeldModel(dir)`, or `node test/models/held-model.mjs DIR`.

import { pathToFileURL } from 'node:url';
import { beforeEachRun, layHarnessedIdentity } from './harnessed-identity.mjs';

const CONFIG = `description: Gives back x after a while, and once nobody holds its worker.
harness: ./harness.mjs
max_batch_size: 4
intra_op_threads: 1
timeout_ms: 600000
warmup: []
`;

const HARNESS = beforeEachRun({
  but: 'the wait',
  head: `import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

// The parent of a runner is its worker.
const HOLD = new URL('./hold-' + process.ppid, import.meta.url);
`,
  before: ['await sleep(50);', 'while (existsSync(HOLD)) await sleep(5);'],
});

/** Lays <dir>/held. */
export function makeHeldModel(dir) {
  return layHarnessedIdentity(dir, { name: 'held', config: CONFIG, harness: HARNESS });
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await makeHeldModel(process.argv[2] ?? '.');
}
