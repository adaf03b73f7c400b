/** The short form of the soak: too short for a slope that means much, long enough to show what leaks by the request. */
import { expect, it } from 'vitest';
import { runSoak } from './soak.js';

/** Heaps are still finding their size after so few requests; a payload kept for each would be 60 MB and more. */
const SHORT_LIMIT_MB = 45;

it('memory of worker and runner stays flat over mixed requests, and every request ends once', async () => {
  const soak = await runSoak({ requests: 1_500, limitMb: SHORT_LIMIT_MB });
  expect(soak.ledger).toMatchObject({ lost: 0, doubled: 0 });
  expect(soak.ledger.terminal).toBe(soak.ledger.accepted);
  expect(soak.worker.growth_mb).toBeLessThan(SHORT_LIMIT_MB);
  expect(soak.runner.growth_mb).toBeLessThan(SHORT_LIMIT_MB);
  expect(soak.ok).toBe(true);
}, 600_000);
