import { describe, expect, it } from 'vitest';
import { setup } from '../fake-api.fixture.js';
import { at } from './answers.fixture.js';

describe('remuda fleet', () => {
  it('shows each worker, and what is wrong with it below the table', async () => {
    const model = {
      version: '1',
      digest: 'd',
      device: 'cpu',
      provider: 'cpu',
      load_mode: 'eager',
      instances: 1,
      memory_bytes: null,
      last_used_at: null,
      backlog_rows: 0,
      seconds_per_row: null,
      run_seconds: null,
      breaker: 'closed',
    };
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
      cpu: {
        model: 'a processor',
        physical_cores: 2,
        threads: 4,
        instruction_sets: ['avx2', 'fma'],
        cgroup_cores: null,
      },
      memory_bytes: 1,
      memory_free_bytes: 1,
      deployments_revision: 0,
      rss_bytes: 100 * 2 ** 20,
      devices: [
        {
          device: 'cpu',
          device_class: 'cpu',
          description: '',
          memory_total_bytes: 8 * 2 ** 30,
          memory_free_bytes: 3 * 2 ** 30,
          memory_budget_bytes: null,
          memory_used_bytes: 2 ** 29,
          utilisation: null,
          compute_capability: null,
          uuid: null,
          driver: null,
          providers: [{ provider: 'cpu', ok: true, reason: null }],
          probed_at: at,
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
    const gpu = {
      ...worker.devices[0],
      device: 'cuda:0',
      device_class: 'cuda',
      description: 'Tesla T4',
      utilisation: 0.5,
      compute_capability: 7.5,
      providers: [{ provider: 'cuda', ok: false, reason: 'no libcudnn' }],
    };
    const withGpu = { ...worker, devices: [...worker.devices, gpu] };
    const devices = await setup({ 'GET /v1/fleet': { body: { workers: [withGpu], at } } });
    expect(await devices.run(['fleet', '--devices'])).toBe(0);
    expect(devices.terminal.answers).toMatchInlineSnapshot(`
      [
        "worker  device  what                                      free    total   models  busy  capability  provider",
        "w1      cpu     a processor, 2 of 4 threads, avx2 fma  3.0 GiB  8.0 GiB  0.5 GiB                    cpu",
        "w1      cuda:0  Tesla T4                               3.0 GiB  8.0 GiB  0.5 GiB  50 %         7.5  cuda fails",
        "w1: cuda on cuda:0: no libcudnn",
      ]
    `);
  });
});
