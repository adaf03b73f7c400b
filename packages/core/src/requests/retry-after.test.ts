import { describe, expect, it } from 'vitest';
import { retryAfterS, unknownRetryAfterS } from './retry-after.js';

const middle = (): number => 0.5;

describe('when to come back', () => {
  it('is when half of the limit has left at the rate of now', () => {
    expect(retryAfterS({ used: 1_000, limit: 1_000, perSecond: 50 }, middle)).toBe(10);
    expect(retryAfterS({ used: 1_500, limit: 1_000, perSecond: 50 }, middle)).toBe(20);
  });

  it('is from half of that to one and a half of it, so that nobody comes together', () => {
    const excess = { used: 1_000, limit: 1_000, perSecond: 50 };
    expect(retryAfterS(excess, () => 0)).toBe(5);
    expect(retryAfterS(excess, () => 0.999_999)).toBeCloseTo(15, 3);
  });

  it('is at least a second and at most two minutes', () => {
    expect(retryAfterS({ used: 10, limit: 10, perSecond: 1_000 }, () => 0)).toBe(1);
    expect(retryAfterS({ used: 1e6, limit: 1e6, perSecond: 0.1 }, middle)).toBe(120);
  });

  it('is about ten seconds where nothing is measured, or nothing leaves', () => {
    expect(retryAfterS({ used: 10, limit: 10, perSecond: undefined }, middle)).toBe(10);
    expect(retryAfterS({ used: 10, limit: 10, perSecond: 0 }, middle)).toBe(10);
    expect(unknownRetryAfterS(() => 0)).toBe(5);
  });
});
