import type { Route } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { lateNotice, predict, unreachable } from './reachable.js';

const NOW = 1_000_000;
const FRESH = { factsMs: 0, runMs: 0 };

/** @param runS what its own run takes, in seconds */
function route(rows_ahead: number, seconds_per_row: number | null, runS = 0): Route {
  const expected_s = seconds_per_row === null ? null : rows_ahead * seconds_per_row + runS;
  const candidate = { device_class: 'cpu', workers: 1, instances: 1, expected_s, verdict: 'chosen' };
  return {
    device_class: 'cpu',
    lane: 'interactive',
    reasons: [],
    candidates: [{ ...candidate, rows_ahead, seconds_per_row }],
  };
}

const startIn = (ms: number) => ({ start: NOW + ms, finish: 0 });
const finishIn = (ms: number) => ({ start: 0, finish: NOW + ms });

describe('a request whose deadline', () => {
  it('comes before it is expected to begin is told so, with the numbers', () => {
    expect(lateNotice(predict(route(1_000, 0.01)), startIn(5_000), NOW)).toBe(
      'it is expected to begin in 10000 ms, after its deadline of 5000 ms: 1000 rows are ahead',
    );
  });

  it('comes before it is expected to end is told so, its own run counted', () => {
    expect(lateNotice(predict(route(10, 0.1, 0.5)), finishIn(1_400), NOW)).toBe(
      'it is expected to end in 1500 ms, after its deadline of 1400 ms: 10 rows are ahead',
    );
  });

  it.each([
    ['can be met', route(100, 0.01), startIn(5_000)],
    ['is not set', route(1_000, 0.01), { start: 0, finish: 0 }],
    ['cannot be judged, since nothing was measured,', route(1_000, null), startIn(5_000)],
  ])('%s is accepted without a word', (_, given, deadlines) => {
    expect(lateNotice(predict(given), deadlines, NOW)).toBeUndefined();
    expect(unreachable(predict(given), deadlines, NOW, FRESH)).toBeUndefined();
  });
});

describe('a request that cannot be expected to meet its deadline', () => {
  it('is refused from a quarter beyond what is allowed, and within that only told', () => {
    const prediction = predict(route(1_000, 0.01));
    expect(unreachable(prediction, startIn(8_000), NOW, FRESH)).toBeUndefined();
    expect(lateNotice(prediction, startIn(8_000), NOW)).toBeDefined();
    expect(unreachable(prediction, startIn(7_999), NOW, FRESH)).toMatchObject({
      code: 'deadline_unreachable',
      message:
        'it would begin in about 10000 ms, and its deadline to start is in 7999 ms; 1000 rows are ahead: allow more time, or send it again later',
      details: {
        predicted_start_ms: 10_000,
        predicted_finish_ms: 10_000,
        allowed_ms: 7_999,
        rows_ahead: 1_000,
        retry_after_s: 3,
      },
    });
  });

  it('is refused for the deadline to finish, with its own run', () => {
    expect(unreachable(predict(route(10, 0.1, 0.5)), finishIn(1_000), NOW, FRESH)).toMatchObject({
      message: expect.stringMatching(
        /^it would end in about 1500 ms, and its deadline to finish is in 1000 ms; /,
      ),
      details: { predicted_start_ms: 1_000, predicted_finish_ms: 1_500, allowed_ms: 1_000, retry_after_s: 1 },
    });
  });

  it('is not told to come back where its own run is too long', () => {
    expect(unreachable(predict(route(0, 0.1, 3)), finishIn(1_000), NOW, FRESH)).toMatchObject({
      message: expect.stringContaining('its own run takes longer than that: allow more time'),
      details: { retry_after_s: null },
    });
  });

  it('is accepted where the queue may have drained since the facts were taken', () => {
    const prediction = predict(route(300, 0.01));
    expect(unreachable(prediction, startIn(500), NOW, { factsMs: 2_500, runMs: 0 })).toBeUndefined();
    expect(unreachable(prediction, startIn(500), NOW, { factsMs: 2_000, runMs: 0 })).toBeDefined();
  });

  it('is accepted where runs were long, but none was measured for a while: else none ever would be', () => {
    const prediction = predict(route(0, 0.1, 3));
    expect(unreachable(prediction, finishIn(1_000), NOW, { factsMs: 0, runMs: 30_001 })).toBeUndefined();
  });

  it('is judged by the rows that are really before it, where that is known', () => {
    expect(predict(route(1_000, 0.01, 1), 20)).toEqual({ rowsAhead: 20, startMs: 200, finishMs: 1_200 });
    expect(predict(route(1_000, 0.01, 1), 5_000)?.rowsAhead).toBe(1_000);
  });
});
