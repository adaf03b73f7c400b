import { expect, it } from 'vitest';
import { RateMeter } from './rate-meter.js';

it('counts rows and runs of the last ten seconds, and forgets older ones', () => {
  let now = 100_000;
  const meter = new RateMeter({ now: () => now, after: () => () => {} });
  meter.count(8);
  meter.count(4);
  now += 5_000;
  expect(meter.rates()).toEqual({ rowsPerSecond: 12 / 5, batchMean: 6 });
  now += 6_000;
  expect(meter.rates()).toEqual({ rowsPerSecond: 0, batchMean: 0 });
  expect(meter.rowsTotal).toBe(12);
});
