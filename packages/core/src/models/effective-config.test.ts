import { HarnessConfig } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { untouched } from './deployments.js';
import { configChange, effectiveConfig } from './effective-config.js';

const config = (changes: Partial<HarnessConfig> = {}) => HarnessConfig.parse({ harness: 'onnx', ...changes });
const plain = untouched('m');

describe('the configuration a version is served with', () => {
  it('is model.yaml where nobody has set anything', () => {
    expect(effectiveConfig(config(), plain)).toEqual(config());
  });

  it('has what the desired state sets, and no more instances than the worker allows', () => {
    const deployment = {
      ...plain,
      instances: 4,
      pinned: true,
      load_mode: 'explicit' as const,
      settings: { max_batch_size: 3, timeout_ms: 9 },
    };
    const wanted = { max_batch_size: 3, timeout_ms: 9, pinned: true, load_mode: 'explicit' };
    expect(effectiveConfig(config(), deployment)).toMatchObject({ ...wanted, instances: 4 });
    expect(effectiveConfig(config(), deployment, 2)).toMatchObject({ ...wanted, instances: 2 });
    expect(effectiveConfig(config({ instances: 1 }), plain, 2).instances).toBe(1);
  });

  it('loses the latency objective of model.yaml where the desired state says so', () => {
    const from = config({ latency_objective_ms: 20 });
    const set = (value: number | null) =>
      effectiveConfig(from, { ...plain, settings: { latency_objective_ms: value } }).latency_objective_ms;
    expect([set(5), set(null)]).toEqual([5, undefined]);
  });
});

describe('a change of the configuration', () => {
  const kind = (changes: Partial<HarnessConfig>) => configChange(config(), config(changes)).kind;

  it('is nothing where the values are the same', () => {
    expect(kind({})).toBe('none');
  });

  it('of what says how it is served applies live', () => {
    for (const change of [
      { max_batch_size: 3 },
      { max_queue_delay_ms: 9 },
      { timeout_ms: 7 },
      { latency_objective_ms: 5 },
      { description: 'x' },
      { labels: { a: 'b' } },
      { version_policy: 'all' as const },
      { load_mode: 'on_demand' as const },
      { pinned: true },
      { fallback_model: 'other' },
    ]) {
      expect(kind(change), JSON.stringify(change)).toBe('live');
    }
  });

  it('of the number of sessions is a scaling, of what a session is made with a reload', () => {
    expect(kind({ instances: 2, max_batch_size: 3 })).toBe('scale');
    expect(configChange(config(), config({ intra_op_threads: 2, instances: 2 }))).toEqual({
      kind: 'reload',
      because: ['intra_op_threads'],
    });
    expect(kind({ warmup: [{ rows: 2, dims: {} }] })).toBe('reload');
    expect(kind({ affinity: ['cuda', 'cpu'] })).toBe('reload');
  });

  it('of what it computes is a reload too', () => {
    expect(kind({ model_kwargs: { a: 1 } })).toBe('reload');
    expect(kind({ precision: 'fp16' })).toBe('reload');
  });
});
