import { describe, expect, it } from 'vitest';
import { AdaptiveLimit } from './adaptive-limit.js';

/** A model whose run takes a fixed part and a part for each row, in milliseconds; every 10th run takes 5 % more. */
function run(
  limit: AdaptiveLimit,
  { fixed, perRow }: { fixed: number; perRow: number },
  runs: number,
): number[] {
  const limits: number[] = [];
  for (let at = 0; at < runs; at++) {
    const rows = limit.limit;
    const ms = (fixed + perRow * rows) * (at % 10 === 0 ? 1.05 : 1);
    limit.observe(rows, ms / 1000);
    limits.push(limit.limit);
  }
  return limits;
}

describe('an adaptive batch limit', () => {
  it('begins at max_batch_size and stays there while the objective is met', () => {
    const limit = new AdaptiveLimit({ maxBatchSize: 32, objectiveMs: 100 });
    expect(new Set(run(limit, { fixed: 5, perRow: 1 }, 200))).toEqual(new Set([32]));
  });

  it('comes down to where the p95 of a run is below the objective, within three steps, and stays near it', () => {
    const limit = new AdaptiveLimit({ maxBatchSize: 64, objectiveMs: 30 });
    // 30 ms are reached at 20 rows.
    const limits = run(limit, { fixed: 10, perRow: 1 }, 2_000);
    expect(limits.slice(0, 10).at(-1)).toBeLessThanOrEqual(20);
    const late = limits.slice(1_000);
    const mean = late.reduce((sum, value) => sum + value, 0) / late.length;
    expect(mean).toBeGreaterThanOrEqual(0.7 * 20);
    expect(Math.max(...late)).toBeLessThanOrEqual(20);
  });

  it('goes up again when the model has become faster', () => {
    const limit = new AdaptiveLimit({ maxBatchSize: 16, objectiveMs: 20 });
    run(limit, { fixed: 0, perRow: 5 }, 100);
    expect(limit.limit).toBeLessThanOrEqual(4);
    run(limit, { fixed: 0, perRow: 0.5 }, 20 * 16);
    expect(limit.limit).toBe(16);
  });

  it('does not come down for one slow run in twenty', () => {
    const limit = new AdaptiveLimit({ maxBatchSize: 8, objectiveMs: 10 });
    for (let at = 0; at < 200; at++) limit.observe(8, at % 20 === 0 ? 1 : 0.005);
    expect(limit.limit).toBe(8);
  });

  it('does not go up on runs that were not full: they say nothing about larger ones', () => {
    const limit = new AdaptiveLimit({ maxBatchSize: 16, objectiveMs: 10 }, 4);
    for (let at = 0; at < 200; at++) limit.observe(1, 0.001);
    expect(limit.limit).toBe(4);
  });

  it('never goes below one row, nor for a single slow row', () => {
    const limit = new AdaptiveLimit({ maxBatchSize: 8, objectiveMs: 1 });
    expect(run(limit, { fixed: 50, perRow: 1 }, 100).at(-1)).toBe(1);
  });
});
