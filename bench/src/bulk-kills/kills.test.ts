/** The short form of the kill test: each of those that have a hand in a bulk job is killed once. */
import { expect, it } from 'vitest';
import { makeKillPlan } from './kill-plan.js';
import { runKills } from './run-kills.js';

it('a bulk job of which coordinator, worker, runner and Redis are killed writes what it would have written anyway', async () => {
  const lines: string[] = [];
  const report = await runKills({
    ...{ seed: 5, rows: 6_000, each: 1, format: 'jsonl', ordered: true },
    ...{ batchRows: 100, chunkRows: 400, waitMs: 25, lockMs: 1_000 },
    say: (line) => lines.push(line),
  });
  expect(report.red, lines.join('\n')).toEqual([]);
  expect(report).toMatchObject({ identical: true, missing: 0, doubled: 0 });
}, 180_000);

it('a seed repeats the order and the moments of the kills', () => {
  const question = { seed: 7, rows: 1_000, each: 3, mostDelayMs: 100 };
  const plan = makeKillPlan(question);
  expect(makeKillPlan(question)).toEqual(plan);
  expect(makeKillPlan({ ...question, seed: 8 })).not.toEqual(plan);
  expect(plan.map(({ atRows }) => atRows)).toEqual(plan.map(({ atRows }) => atRows).sort((a, b) => a - b));
  expect(plan.filter(({ target }) => target === 'redis')).toHaveLength(3);
});
