/**
 * Which `remuda up` a state folder belongs to: `up.json` in it names the process for as long as it runs. A second one
 * beside it shares the Redis and leaves the logs of the first alone; what a killed one left is taken over.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRunning, type ProcessIdentity, thisProcess, withLock } from '@remuda/infra/process-lock';

export interface StateClaim {
  /** Id of the living `up` that has it already; undefined: it is ours. */
  heldBy: number | undefined;
  release(): void;
}

export async function claimState(stateFolder: string): Promise<StateClaim> {
  const path = join(stateFolder, 'up.json');
  return withLock(`${path}.lock`, async () => {
    const owner = readOwner(path);
    if (owner && owner.pid !== process.pid && isRunning(owner)) return { heldBy: owner.pid, release() {} };
    writeFileSync(path, JSON.stringify(thisProcess()));
    return { heldBy: undefined, release: () => release(path) };
  });
}

/** Only what is still ours. */
function release(path: string): void {
  if (readOwner(path)?.pid === process.pid) rmSync(path, { force: true });
}

function readOwner(path: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}
