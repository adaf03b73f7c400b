/**
 * A runner whose store is a folder, for tests: `<id>-<item>.in` holds an input frame, `<id>-<item>.out` gets the outcome.
 * The name of a missing input says what the claim's verdict is: `fenced-…`, `expired-…`, else payload_missing.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Claim } from '../store/outcome.js';
import { serveRunner } from './runner-child.js';
import type { BatchUnit } from './runner-protocol.js';

serveRunner(async ({ url }) => {
  const folder = fileURLToPath(url);
  const claim = async ({ requestId, item }: BatchUnit): Promise<Claim> => {
    if (requestId.startsWith('fenced')) return { verdict: 'fenced' };
    if (requestId.startsWith('expired')) return { verdict: 'expired_start' };
    try {
      return { verdict: 'run', payload: await readFile(join(folder, `${requestId}-${item}.in`)) };
    } catch {
      return { verdict: 'payload_missing' };
    }
  };
  return {
    store: {
      claimAndFetch: (units) => Promise.all(units.map(claim)),
      writeOutcomes: (writes) =>
        Promise.all(
          writes.map(async ({ unit, frame }) => {
            await writeFile(join(folder, `${unit.requestId}-${unit.item}.out`), frame);
            return { verdict: 'written' as const, ended: 'succeeded' as const };
          }),
        ),
    },
    close: () => {},
  };
});
