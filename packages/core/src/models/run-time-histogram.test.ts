import { expect, it } from 'vitest';
import { bucketOf, countAbove, lowerEdge, QUANTILE_ERROR, quantileOf } from './run-time-histogram.js';

function histogramOf(times: readonly number[]): Map<number, number> {
  const histogram = new Map<number, number>();
  for (const time of times) histogram.set(bucketOf(time), (histogram.get(bucketOf(time)) ?? 0) + 1);
  return histogram;
}

it('tells a quantile to within the stated error', () => {
  for (const scale of [0.0002, 0.003, 0.7, 40]) {
    const times = Array.from({ length: 1_000 }, (_, i) => scale * (1 + i / 250));
    const histogram = histogramOf(times);
    for (const share of [0.5, 0.95, 0.99]) {
      const exact = times[Math.ceil(share * times.length) - 1] as number;
      const ratio = (quantileOf(histogram, share) as number) / exact;
      expect(Math.max(ratio, 1 / ratio)).toBeLessThanOrEqual(1 + QUANTILE_ERROR + 1e-9);
    }
  }
  expect(QUANTILE_ERROR).toBeLessThan(0.045);
});

it('each bucket begins where the one before it ends', () => {
  for (let bucket = 1; bucket < 200; bucket++) {
    expect(bucketOf(lowerEdge(bucket) * 1.000_001)).toBe(bucket);
    expect(bucketOf(lowerEdge(bucket + 1) * 0.999_999)).toBe(bucket);
  }
});

it('takes times that make no sense for very short or very long ones', () => {
  expect([0, -1, Number.NaN, 1e-9].map(bucketOf)).toEqual([0, 0, 0, 0]);
  expect(bucketOf(1e9)).toBe(bucketOf(1e12));
});

it('has no quantile while nothing was counted', () => {
  expect(quantileOf(new Map(), 0.95)).toBeNull();
});

it('counts above a time only what is surely above', () => {
  const histogram = histogramOf([0.01, 0.01, 0.02, 0.08]);
  expect(countAbove(histogram, 0.015)).toBe(2);
  expect(countAbove(histogram, 0.08)).toBe(0);
});
