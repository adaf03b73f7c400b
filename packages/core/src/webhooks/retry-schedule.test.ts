import { describe, expect, it } from 'vitest';
import { nextAttemptInMs, RETRY_AFTER_MOST_MS, RETRY_SCHEDULE, retryAfterMs } from './retry-schedule.js';

const HOUR = 3_600_000;

/** Times of all attempts of a delivery that always fails, in milliseconds from the first. */
function attemptsOf(random: () => number): number[] {
  const times = [0];
  for (let at = 0; ; ) {
    const pause = nextAttemptInMs({ failed: times.length, random: random() });
    if (pause === null) return times;
    at += pause;
    times.push(at);
  }
}

describe('the schedule', () => {
  it('is ten attempts, the last after 75 hours and a half', () => {
    const times = attemptsOf(() => 0);
    expect(times).toHaveLength(10);
    expect(times.slice(0, 4)).toEqual([0, 5_000, 305_000, 2_105_000]);
    expect((times.at(-1) as number) / HOUR).toBeCloseTo(75.58, 1);
  });

  it('is never early, and at most a tenth late', () => {
    const early = attemptsOf(() => 0);
    const late = attemptsOf(() => 0.999999);
    for (const [at, time] of late.entries()) {
      expect(time).toBeGreaterThanOrEqual(early[at] as number);
      expect(time).toBeLessThanOrEqual((early[at] as number) * 1.1 + 10);
    }
    expect((late.at(-1) as number) / HOUR).toBeLessThan(84);
  });

  it('ends after its last entry', () => {
    expect(nextAttemptInMs({ failed: RETRY_SCHEDULE.length, random: 0 })).toBeNull();
    expect(nextAttemptInMs({ failed: 2, random: 0, schedule: [0, 10] })).toBeNull();
  });

  it('waits longer where Retry-After asks for it, and no shorter', () => {
    expect(nextAttemptInMs({ failed: 1, retryAfterMs: 60_000, random: 0 })).toBe(60_000);
    expect(nextAttemptInMs({ failed: 2, retryAfterMs: 60_000, random: 0 })).toBe(300_000);
  });

  it('waits no longer than a day, whatever is asked for', () => {
    expect(nextAttemptInMs({ failed: 1, retryAfterMs: 90 * 24 * HOUR, random: 0 })).toBe(RETRY_AFTER_MOST_MS);
  });
});

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  it.each([
    ['120', 120_000],
    ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['99999999999', 99_999_999_999_000],
    ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
    ['soon', 0],
    ['-5', 0],
    [undefined, 0],
  ])('%s is %d ms', (header, ms) => expect(retryAfterMs(header, now)).toBe(ms));
});
