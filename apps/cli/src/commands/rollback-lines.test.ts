import { expect, it } from 'vitest';
import { at } from './answers.fixture.js';
import { rollbackLines } from './rollback-lines.js';

const event = (what: string, detail: object = {}) => ({
  ...{ at, who: 'fleet', what, revision: 1 },
  detail: { ...detail },
});
const figures = {
  error_rate: { stable: 0, canary: 0.5 },
  run_p95_s: { stable: 0.01, canary: 0.0205 },
};

it.each([
  ['errors', '50 % errors, the stable version 0 %'],
  ['latency', 'p95 of runs 20.5 ms, the stable version 10.0 ms'],
  ['breaker', 'its runs kept failing wherever it was loaded'],
])('a canary that was taken back for %s is told with the reason', (by, reason) => {
  const events = [event('rolled_back', { canary: 'next', version: '2', by, ...figures }), event('split_set')];
  expect(rollbackLines(events)).toEqual([
    `version 2 (next) was taken back at 2026-01-01T00:00:00Z: ${reason}`,
  ]);
});

it('what was taken back from an earlier split is not told', () => {
  const taken = event('rolled_back', { canary: '2', version: '2', by: 'errors', ...figures });
  expect(rollbackLines([event('scaled'), event('split_set'), taken])).toEqual([]);
});
