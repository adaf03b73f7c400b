/** The short form of the chaos suite: each kind of fault once, by count of requests and faults and not by time. */
import { expect, it } from 'vitest';
import { FAULT_NAMES } from './plan/fault-kinds.js';
import { runChaos } from './run-chaos.js';

/** No test asks how fast the machine is: this only finds what stands still for good. */
const IDLE_LIMIT_S = 60;

it('a fleet that is hurt in every way keeps its promises: nothing lost, nothing doubled, nobody forgotten', async () => {
  const lines: string[] = [];
  const report = await runChaos({
    ...{ seed: 4, ids: 400, faults: FAULT_NAMES.length, workers: 2, apis: 2, idleLimitS: IDLE_LIMIT_S },
    say: (line) => lines.push(line),
  });
  expect(report.red, lines.join('\n')).toEqual([]);
  const { figures, byKind, skipped } = report;
  expect(figures.faults).toBe(FAULT_NAMES.length);
  expect(new Set([...Object.keys(byKind), ...Object.keys(skipped)])).toEqual(new Set(FAULT_NAMES));
  expect(figures).toMatchObject({ lost: 0, doubled: 0, webhooks_missing: 0, seed: 4 });
  expect(figures.accepted).toBeGreaterThanOrEqual(400);
  expect(figures.terminal).toBe(figures.accepted);
}, 900_000);
