import { describe, expect, it } from 'vitest';
import { recommend, type Setting, type SweepPoint } from './recommendation.js';
import { pairsOf, sweep } from './sweep.js';

/** A machine of four cores: a run has a fixed part, threads share out its work badly, large batches leave the cache. */
function simulated({ fixedMs = 1, rowMs = 1, threadGain = 0.6, cacheRows = 1_000, noise = 0 } = {}) {
  const measured: Setting[] = [];
  let turn = 0;
  const truth = ({ batch, instances, threads }: Setting): SweepPoint => {
    const speed = 1 + (threads - 1) * threadGain;
    const slower = batch > cacheRows ? 1.4 : 1;
    const runMs = fixedMs + (rowMs * batch * slower) / speed;
    const rowsPerS = (instances * batch * 1000) / runMs;
    return {
      batch,
      instances,
      threads,
      rowsPerS,
      p50Ms: runMs,
      p95Ms: runMs * 1.1,
      rssBytes: 1e6 * instances,
    };
  };
  const measure = async (setting: Setting): Promise<SweepPoint> => {
    measured.push(setting);
    turn = (turn * 7 + 3) % 11;
    const point = truth(setting);
    return { ...point, rowsPerS: point.rowsPerS * (1 + noise * (turn / 5 - 1)) };
  };
  return { measure, measured, truth };
}

const all = pairsOf(4).flatMap((pair) => [1, 2, 4, 8, 16, 32, 64].map((batch) => ({ ...pair, batch })));

describe('a sweep', () => {
  const models = {
    'gains from batches': simulated({ fixedMs: 5 }),
    'is fastest in small batches': simulated({ fixedMs: 0.2, cacheRows: 4 }),
    'is fastest row by row': simulated({ fixedMs: 0, cacheRows: 1 }),
    'gains from threads more than from instances': simulated({ fixedMs: 0.1, threadGain: 1.3 }),
    'is measured with noise of 3 %': simulated({ fixedMs: 2, cacheRows: 16, noise: 0.03 }),
  };
  for (const [what, { measure, measured, truth }] of Object.entries(models)) {
    it(`recommends at least 0.95 of the best of a full sweep for a model that ${what}, and measures less`, async () => {
      const { recommendation } = await sweep({ measure, cores: 4, maxBatch: 64 });
      const best = Math.max(...all.map((setting) => truth(setting).rowsPerS));
      expect(truth(recommendation.point).rowsPerS).toBeGreaterThanOrEqual(0.95 * best);
      const settings = new Set(measured.map((setting) => JSON.stringify(setting)));
      expect(settings.size).toBeLessThan(all.length * 0.7);
    });
  }

  it('leaves a pair that has no hope after two sizes', async () => {
    const { measure, measured } = simulated({ fixedMs: 0.01, threadGain: 0 });
    await sweep({ measure, cores: 4, maxBatch: 64 });
    const batches = measured.filter(({ instances, threads }) => instances === 1 && threads === 4);
    expect(batches.map(({ batch }) => batch)).toEqual([1, 4]);
  });

  it('recommends the best below a latency', async () => {
    const { measure, truth } = simulated({ fixedMs: 5 });
    const { recommendation } = await sweep({ measure, cores: 4, maxBatch: 64, latencyMs: 20 });
    expect(recommendation.meetsObjective).toBe(true);
    expect(truth(recommendation.point).p95Ms).toBeLessThanOrEqual(20);
    const best = Math.max(
      ...all
        .map(truth)
        .filter(({ p95Ms }) => p95Ms <= 20)
        .map(({ rowsPerS }) => rowsPerS),
    );
    expect(recommendation.point.rowsPerS).toBeGreaterThanOrEqual(0.95 * best);
  });

  it('goes on without a setting that cannot be run, and says what failed when none can', async () => {
    const { measure } = simulated();
    const failed: Setting[] = [];
    const { points } = await sweep({
      measure: (setting) =>
        setting.instances > 2 ? Promise.reject(new Error('no memory')) : measure(setting),
      cores: 4,
      maxBatch: 4,
      onFailed: (setting) => failed.push(setting),
    });
    expect(Math.max(...points.map(({ instances }) => instances))).toBe(2);
    expect(failed.length).toBeGreaterThan(0);
    const broken = sweep({ measure: () => Promise.reject(new Error('no memory')), cores: 1, maxBatch: 1 });
    await expect(broken).rejects.toThrow('no memory');
  });

  it('measures everything where that is asked for', async () => {
    const { measure, measured } = simulated();
    const found = await sweep({ measure, cores: 4, maxBatch: 64, exhaustive: true, repeats: 2 });
    expect(found.measurements).toBe(2 * all.length);
    expect(measured).toHaveLength(2 * all.length);
  });
});

describe('a recommendation', () => {
  const point = (batch: number, rowsPerS: number, change: Partial<SweepPoint> = {}): SweepPoint => ({
    batch,
    rowsPerS,
    instances: 1,
    threads: 1,
    p50Ms: batch,
    p95Ms: batch,
    rssBytes: 1,
    ...change,
  });

  it('is the smallest batch within 2 % of the highest throughput', () => {
    expect(recommend([point(4, 97), point(8, 99), point(16, 100)]).point.batch).toBe(8);
  });

  it('takes fewer threads where batch and throughput are equal', () => {
    const points = [point(8, 100, { instances: 2, threads: 2 }), point(8, 99, { instances: 2 })];
    expect(recommend(points).point).toMatchObject({ instances: 2, threads: 1 });
  });

  it('says so where nothing meets the latency, and names what comes nearest', () => {
    expect(recommend([point(4, 97), point(8, 99)], 2)).toMatchObject({
      meetsObjective: false,
      point: { batch: 4 },
    });
  });
});
