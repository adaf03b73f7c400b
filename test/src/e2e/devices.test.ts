/**
 * Devices, with machines that are pretended: a worker whose record says that it has a GPU runs on the CPU what is meant
 * for that (the provider switch); all else is as it would be. What needs a real GPU is skipped where there is none.
 */
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { probeProviders } from '@remuda/core/inference/probe-providers';
import type { InferenceResult } from '@remuda/schemas';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { tally } from '../support/api.js';
import { Fleet, type FleetProcess } from '../support/fleet.js';
import { testModels } from '../support/test-models.js';

const LOCK_MS = 2_000;
/** Until a change of a worker has gone through its heartbeat and the API's view of the fleet. */
const HEARD_OF = { timeout: 15_000, interval: 200 };
const GIB = 2 ** 30;

let models: string;
let machine: string;
let fleet: Fleet | undefined;
const [cuda] = await probeProviders({ providers: ['cuda'] });

beforeAll(async () => {
  models = await testModels();
  appendFileSync(
    join(models, 'slow/model.yaml'),
    '\naffinity:\n  - device: cuda\n    min_compute_capability: 7.5\n  - cpu\n',
  );
  appendFileSync(
    join(models, 'identity-fp32/model.yaml'),
    '\naffinity:\n  - device: cuda\n    min_compute_capability: 9\n',
  );
  machine = join(models, 'gpu-machine.json');
  const gpu = {
    device: 'cuda:0',
    device_class: 'cuda',
    description: 'Tesla T4, 15.0 GiB memory, driver 550.54.15',
    memory_total_bytes: 15 * GIB,
    memory_free_bytes: 14 * GIB,
    utilisation: 0,
    compute_capability: 7.5,
  };
  writeFileSync(machine, JSON.stringify({ cpu: null, cores: 2, memory_bytes: 8 * GIB, devices: [gpu] }));
});
afterEach(async () => {
  await fleet?.stop();
  fleet = undefined;
});
afterAll(() => rmSync(models, { recursive: true, force: true }));

async function start(): Promise<Fleet> {
  fleet = await Fleet.start({
    models,
    workers: 0,
    env: { REMUDA_WORKER_MODELS: 'slow,identity-fp32', REMUDA_WORKER_LOCK_MS: String(LOCK_MS) },
  });
  return fleet;
}

const addGpuWorker = (to: Fleet): Promise<FleetProcess> =>
  to.addWorker({
    REMUDA_WORKER_ID: 'gpu',
    REMUDA_WORKER_PROBE: machine,
    REMUDA_WORKER_PROVIDER_SWITCH: 'cuda=cpu',
  });
const addCpuWorker = (to: Fleet): Promise<FleetProcess> => to.addWorker({ REMUDA_WORKER_ID: 'cpu' });

/** A request of the slow model: about `ms` of native work. */
const slow = (ms: number, first = 1) => ({
  inputs: {
    x: { datatype: 'FP32', shape: [1, 4], data: [first, 1, 2, 3] },
    iterations: { datatype: 'INT64', shape: [], data: Math.round(ms * 125) },
  },
});

/** Which device classes have the slow model ready, as the API knows. */
async function readyOn({ api }: Fleet): Promise<string[]> {
  const { workers } = await api.fleet();
  return workers
    .flatMap((worker) => worker.models)
    .filter(({ model, state }) => model === 'slow' && state === 'ready')
    .map(({ device }) => device)
    .sort();
}

describe('a worker that pretends to have a GPU', () => {
  it('says so, loads what its rules allow, and tells what they do not', async () => {
    const running = await start();
    await addGpuWorker(running);
    await expect.poll(() => readyOn(running), HEARD_OF).toEqual(['cuda:0']);
    const [worker] = (await running.api.fleet()).workers;
    expect(worker?.devices).toMatchObject([
      { device: 'cuda:0', compute_capability: 7.5, memory_free_bytes: 14 * GIB, runner: 'ready' },
    ]);
    const { body } = await running.api.get<{ problems: string[] }>('/v1/models/identity-fp32');
    expect(body.problems.join('\n')).toContain('cuda:0 has compute capability 7.5; the rule asks for 9');
    const result = await running.api.run('slow', slow(1));
    expect(result).toMatchObject({
      route: { device_class: 'cuda' },
      metrics: { worker_id: 'gpu', device: 'cuda:0', provider: 'cpu' },
    });
  });

  it('killed with requests waiting: all end on the CPU, each once', async () => {
    const running = await start();
    const gpu = await addGpuWorker(running);
    await expect.poll(() => readyOn(running), HEARD_OF).toEqual(['cuda:0']);
    const answers = await Promise.all(
      Array.from({ length: 150 }, (_, i) => running.api.submit('slow', slow(60, i))),
    );
    const ids = answers.map(({ body }) => body.request_id);
    expect(answers.every(({ body }) => body.route.device_class === 'cuda')).toBe(true);
    // Stands still while the other one starts, or nothing would be left to move on a slow machine.
    gpu.child.kill('SIGSTOP');
    await addCpuWorker(running);
    gpu.child.kill('SIGKILL');
    const ended = await running.api.settle(90);
    expect(tally(ended.values())).toEqual({ succeeded: 150 });
    const results = await Promise.all(ids.map((id) => running.api.result(id)));
    const moved = results.filter(({ route }) => route.device_class === 'cpu');
    expect(moved.length).toBeGreaterThan(50);
    expect(moved.every((result) => ranOn(result) === 'cpu/cpu')).toBe(true);
    // What the worker has run is what the results say that it ran: none twice.
    await expect
      .poll(async () => (await running.api.fleet()).workers.map(({ rows_total }) => rows_total), HEARD_OF)
      .toEqual([moved.length]);
    const record = await running.api.record(moved.at(-1)?.request_id as string);
    expect(record.route.reasons.join('\n')).toContain('cuda has lost its last live worker: moved to cpu');
  });
});

const ranOn = ({ metrics }: InferenceResult): string => `${metrics?.worker_id}/${metrics?.device}`;

describe('a real GPU', () => {
  it.skipIf(!cuda?.ok)(
    `runs what is meant for it (needs one; here: ${cuda?.reason ?? 'it loads'})`,
    async () => {
      const running = await start();
      await running.addWorker({ REMUDA_WORKER_ID: 'real' });
      const result = await running.api.run('slow', { ...slow(1), device: 'cuda' });
      expect(result.metrics).toMatchObject({ device: 'cuda:0', provider: 'cuda' });
    },
  );
});
