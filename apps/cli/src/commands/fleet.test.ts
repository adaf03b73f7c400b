import { describe, expect, it } from 'vitest';
import { setup } from '../fake-api.fixture.js';
import { at } from './answers.fixture.js';

describe('remuda fleet', () => {
  it('shows each worker, and what is wrong with it below the table', async () => {
    const model = { version: '1', digest: 'd', device: 'cpu', provider: 'cpu' };
    const worker = {
      worker_id: 'w1',
      host: 'host-a',
      pid: 1,
      remuda_version: '0.1.0',
      started_at: at,
      at,
      state: 'ready',
      healthy: false,
      unhealthy_reason: 'no progress for 60 s',
      cores: 2,
      memory_bytes: 1,
      rss_bytes: 100 * 2 ** 20,
      devices: [
        {
          device: 'cpu',
          device_class: 'cpu',
          description: '',
          runner: 'restarting',
          runner_pid: null,
          runner_restarts: 1,
          runner_rss_bytes: 50 * 2 ** 20,
        },
      ],
      models: [
        { ...model, model: 'add', state: 'ready', reason: null },
        { ...model, model: 'bad', state: 'failed', reason: 'corrupt' },
        { ...model, model: 'noyaml', version: '', state: 'failed', reason: 'no model.yaml' },
      ],
      in_flight: 0,
      rows_per_s: 12.34,
      batch_mean: 3.21,
      rows_total: 5,
    };
    const { run, terminal } = await setup({ 'GET /v1/fleet': { body: { workers: [worker], at } } });
    expect(await run(['fleet'])).toBe(0);
    expect(terminal.answers).toEqual([
      'worker  host    state  health     devices         models             rows/s  batch     rss',
      'w1      host-a  ready  unhealthy  cpu restarting  1 ready, 2 failed    12.3    3.2  150 MB',
      'w1: no progress for 60 s',
      'w1: bad version 1 on cpu: corrupt',
      'w1: noyaml on cpu: no model.yaml',
    ]);
  });
});
