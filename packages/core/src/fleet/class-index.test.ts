import type { LoadedModel, WorkerHeartbeat } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { indexClasses } from './class-index.js';

const worker = (models: Partial<LoadedModel>[], state: WorkerHeartbeat['state'] = 'ready') =>
  ({
    state,
    models: models.map((given) => ({
      model: 'm',
      version: '1',
      device: 'cpu',
      state: 'ready',
      load_mode: 'eager',
      instances: 1,
      backlog_rows: 0,
      seconds_per_row: null,
      run_seconds: null,
      breaker: 'closed',
      ...given,
    })),
  }) as WorkerHeartbeat;

describe('indexClasses', () => {
  it('adds up devices of a class: together they are as fast as all of them', () => {
    const index = indexClasses([
      worker([{ device: 'cuda:0', seconds_per_row: 0.01, run_seconds: 0.02, backlog_rows: 8, instances: 2 }]),
      worker([{ device: 'cuda:1', seconds_per_row: 0.01, run_seconds: 0.04, backlog_rows: 4 }]),
      // Not measured: taken for as fast as the others.
      worker([{ device: 'cuda:0' }]),
    ]);
    const [cuda] = index.get('m@1') ?? [];
    expect(cuda).toMatchObject({
      deviceClass: 'cuda',
      ready: 3,
      instances: 4,
      rowsInHand: 12,
      runSeconds: 0.03,
    });
    expect(cuda?.secondsPerRow).toBeCloseTo(0.01 / 3);
    expect(cuda?.deviceSecondsPerRow).toBeCloseTo(0.01);
  });

  it('keeps versions and classes apart, and knows a model as a whole', () => {
    const index = indexClasses([worker([{}, { version: '2' }, { device: 'cuda:0' }])]);
    expect([...index.keys()].sort()).toEqual(['m', 'm@1', 'm@2']);
    expect(index.get('m@1')?.map(({ deviceClass }) => deviceClass)).toEqual(['cpu', 'cuda']);
    expect(index.get('m')).toMatchObject([{ ready: 2 }, { ready: 1 }]);
  });

  it('tells ready from coming from broken, and leaves out the rest', () => {
    const index = indexClasses([
      worker([
        { state: 'warming' },
        { state: 'unloaded', load_mode: 'on_demand' },
        { breaker: 'open' },
        { breaker: 'half_open' },
        { state: 'failed' },
        { state: 'draining' },
        { state: 'unloaded', load_mode: 'explicit' },
        { device: 'abacus:0' },
      ]),
      worker([{}], 'draining'),
    ]);
    expect(index.get('m')).toMatchObject([{ ready: 1, coming: 2, broken: 1 }]);
  });
});
