import type { Route } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { lateNotice } from './resolve-route.js';

function route(rows_ahead: number, seconds_per_row: number | null): Route {
  const candidate = { device_class: 'cpu', workers: 1, instances: 1, expected_s: null, verdict: 'chosen' };
  return {
    device_class: 'cpu',
    lane: 'interactive',
    reasons: [],
    candidates: [{ ...candidate, rows_ahead, seconds_per_row }],
  };
}

describe('a request whose deadline', () => {
  it('comes before it is expected to begin is told so, with the numbers', () => {
    expect(lateNotice(route(1_000, 0.01), 5_000)).toBe(
      'it is expected to begin in 10000 ms, after its deadline of 5000 ms: 1000 rows are ahead',
    );
  });

  it.each([
    ['can be met', route(100, 0.01), 5_000],
    ['is not set', route(1_000, 0.01), undefined],
    ['cannot be judged, since nothing was measured,', route(1_000, null), 5_000],
  ])('%s is accepted without a word', (_, given, timeout) => {
    expect(lateNotice(given, timeout)).toBeUndefined();
  });
});
