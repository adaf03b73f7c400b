import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeModels, sourceOf } from '../inference/test-models.fixture.js';
import { ModelLab } from './model-lab.js';
import { profileModel } from './profile-model.js';
import { sweepPlot } from './sweep-plot.js';

let models: string;
beforeAll(async () => {
  models = await makeModels();
});
afterAll(() => rmSync(models, { recursive: true, force: true }));

const BRIEF = { measureS: 0.01, warmUpS: 0.01, repeats: 1 };

describe('the profile of a model', () => {
  it('measures the real model over batches, instances and threads, and recommends what it measured', async () => {
    const failed: unknown[] = [];
    const found = await profileModel(sourceOf(models, 'variable-length'), {
      ...BRIEF,
      cores: 2,
      maxBatch: 4,
      trial: { dims: { L: 8 } },
      onFailed: (setting) => failed.push(setting),
    });
    expect(failed).toEqual([]);
    expect(found).toMatchObject({ provider: 'cpu', inputs: 'synthetic', items: 16 });
    const pairs = new Set(found.points.map(({ instances, threads }) => `${instances}×${threads}`));
    expect([...pairs].sort()).toEqual(['1×1', '1×2', '2×1']);
    for (const point of found.points) {
      expect(point.rowsPerS).toBeGreaterThan(0);
      expect(point.p95Ms).toBeGreaterThanOrEqual(point.p50Ms);
      expect(point.rssBytes).toBeGreaterThan(1e7);
    }
    expect(found.points).toContainEqual(found.recommendation.point);
  });

  it('has batches of one row for a model that cannot be batched', async () => {
    const found = await profileModel(sourceOf(models, 'fixed-batch'), { ...BRIEF, cores: 1 });
    expect(found.points.map(({ batch }) => batch)).toEqual([1]);
  });

  it('says what the load said where the model cannot be loaded', async () => {
    const profile = profileModel(sourceOf(models, 'corrupt'), { ...BRIEF, cores: 1 });
    await expect(profile).rejects.toThrow('not a valid ONNX file');
  });
});

describe('a model lab', () => {
  it('says so when the process of the model dies, and never hangs', async () => {
    const lab = await ModelLab.open(sourceOf(models, 'crash-on-mark'));
    const x = {
      name: 'x',
      datatype: 'FP32' as const,
      shape: [1, 1],
      bytes: new Uint8Array(Float32Array.of(777).buffer),
    };
    await expect(lab.alone([{ inputs: [x], parameters: {} }])).rejects.toThrow('ended with SIGKILL');
    lab.close();
  });
});

describe('the plot of a sweep', () => {
  it('has a line for each pair, all points, the recommendation, and no markup of a name', () => {
    const point = (batch: number, instances: number, rowsPerS: number) => ({
      batch,
      instances,
      threads: 1,
      rowsPerS,
      p50Ms: 1,
      p95Ms: 1,
      rssBytes: 1,
    });
    const points = [point(1, 1, 100), point(4, 1, 180), point(1, 2, 190), point(4, 2, 240)];
    const svg = sweepPlot(points, { title: '<m>@1', recommended: points[3] as (typeof points)[number] });
    expect(svg.match(/<polyline/g)).toHaveLength(2);
    expect(svg.match(/<circle/g)).toHaveLength(5);
    expect(svg).toContain('&lt;m&gt;@1');
    expect(svg).toContain('recommended');
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });
});
