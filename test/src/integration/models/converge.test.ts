/** Workers follow the desired state: what they load, keep, change and unload, and what they say of it. */
import { ModelLoadError } from '@remuda/core/errors';
import { afterEach, describe, expect, it } from 'vitest';
import { LightFleet, modelFiles } from '../../support/light-fleet.js';

let fleet: LightFleet;
afterEach(() => fleet.stop());

const ready = ({ state }: { state: string }) => state === 'ready';
const unloaded = ({ state }: { state: string }) => state === 'unloaded';
const failed = ({ state }: { state: string }) => state === 'failed';

describe('a worker', () => {
  it('loads the newest version at its start, and tells which others a request could load', async () => {
    fleet = new LightFleet(modelFiles('m', [1, 2]));
    const { id, runner } = await fleet.addWorker();
    expect([...runner.loaded.keys()]).toEqual(['m@2']);
    expect(await fleet.stateOf(id, 'm', '2')).toMatchObject({
      state: 'ready',
      provider: 'none',
      reason: null,
    });
    expect(await fleet.stateOf(id, 'm', '1')).toMatchObject({
      state: 'unloaded',
      reason: 'outside the version policy',
    });
  });

  it('loads and unloads what the desired state names, and says why', async () => {
    fleet = new LightFleet(modelFiles('m', [1, 2]));
    const { id, runner } = await fleet.addWorker();
    const { revision } = await fleet.edit('m', (now) => ({ ...now, loads: { 1: 'loaded', 2: 'unloaded' } }));
    await fleet.until(id, ['m', '1'], ready);
    expect(await fleet.until(id, ['m', '2'], unloaded)).toMatchObject({ reason: 'it was unloaded by name' });
    expect([...runner.loaded.keys()]).toEqual(['m@1']);
    const [heartbeat] = await fleet.fleet();
    expect(heartbeat?.deployments_revision).toBe(revision);
  });

  it('takes settings and sessions without a load, and threads by one beside what serves', async () => {
    fleet = new LightFleet(modelFiles('m', [1]));
    const { id, runner } = await fleet.addWorker();
    const first = runner.loaded.get('m@1');
    await fleet.edit('m', (now) => ({ ...now, instances: 3, settings: { max_batch_size: 2 } }));
    await fleet.until(id, ['m', '1'], ({ instances }) => instances === 3);
    expect(runner.loaded.get('m@1')).toBe(first);
    fleet.write(fleet.models, { 'm/model.yaml': 'harness: onnx\nintra_op_threads: 2\n' });
    await fleet.edit('m', (now) => now);
    await fleet.until(id, ['m', '1'], () => runner.loaded.get('m@1') !== first);
    expect(runner.loaded.get('m@1')?.config).toMatchObject({ intra_op_threads: 2, instances: 3 });
    expect(await fleet.stateOf(id, 'm', '1')).toMatchObject({ state: 'ready' });
  });

  it('keeps serving while a new version fails to load, and says what failed', async () => {
    fleet = new LightFleet(modelFiles('m', [1]));
    const { id } = await fleet.addWorker({
      onLoad: ({ version }) => {
        if (version === '2') throw new Error('not a model at all');
      },
    });
    fleet.write(fleet.models, modelFiles('m', [2]));
    await fleet.edit('m', (now) => now);
    expect(await fleet.until(id, ['m', '2'], failed)).toMatchObject({ reason: 'not a model at all' });
    expect(await fleet.stateOf(id, 'm', '1')).toMatchObject({ state: 'ready' });
  });

  it('serves on what it has loaded when model.yaml becomes faulty, and says the line', async () => {
    fleet = new LightFleet(modelFiles('m', [1]));
    const { id } = await fleet.addWorker();
    fleet.write(fleet.models, { 'm/model.yaml': 'harness: onnx\nmax_batch: 3\n' });
    await fleet.edit('m', (now) => now);
    const state = await fleet.until(id, ['m', '1'], ({ reason }) => reason !== null);
    expect(state.state).toBe('ready');
    expect(state.reason).toMatch(/m\/model.yaml:2: max_batch: unknown key; did you mean/);
  });

  it('serves on where the rules of its model have gone to a device that nobody has, and says so', async () => {
    fleet = new LightFleet(modelFiles('m', [1]));
    const { id, runner } = await fleet.addWorker();
    const other = await fleet.addWorker();
    fleet.write(fleet.models, { 'm/model.yaml': 'harness: onnx\naffinity: [cuda]\n' });
    await fleet.edit('m', (now) => now);
    for (const worker of [id, other.id]) {
      const state = await fleet.until(worker, ['m', '1'], ({ reason }) => reason !== null);
      expect(state).toMatchObject({
        state: 'ready',
        reason: expect.stringContaining('no other has version 1 ready'),
      });
    }
    expect([...runner.loaded.keys()]).toEqual(['m@1']);
  });

  it('does not load files that are not those that were registered', async () => {
    fleet = new LightFleet(modelFiles('m', [1]));
    await fleet.edit('m', (now) => ({ ...now, digests: { 1: 'f'.repeat(64) } }));
    const { id } = await fleet.addWorker();
    expect((await fleet.stateOf(id, 'm', '1'))?.reason).toMatch(
      /^m@1: the files in .* have digest \w{16}, registered is f{16}: /,
    );
  });
});

describe('two workers with different files for one version', () => {
  const files = modelFiles('m', [1]);
  const other = { ...files, 'm/1/model.onnx': 'something else' };

  it('do not both serve it: the second one names both, the folder and the remedy', async () => {
    fleet = new LightFleet(files);
    await fleet.addWorker({ id: 'first' });
    const { models } = await fleet.addWorker({ id: 'second', files: other });
    const state = await fleet.stateOf('second', 'm', '1');
    expect(state?.state).toBe('failed');
    expect(state?.reason).toMatch(/^m@1: worker second has files of digest \w{16} in /);
    expect(state?.reason).toContain(`${models}/m/1`);
    expect(state?.reason).toMatch(
      /worker first on .* serves digest \w{16}: .*give the changed files a new version/,
    );
    expect(await fleet.stateOf('first', 'm', '1')).toMatchObject({ state: 'ready' });
  });

  it('that start at the same time agree on one of them', async () => {
    fleet = new LightFleet(files);
    await Promise.all([
      fleet.addWorker({ id: 'a', stageMs: 100 }),
      fleet.addWorker({ id: 'b', files: other, stageMs: 100 }),
    ]);
    await fleet.until('a', ['m', '1'], ready);
    await fleet.until('b', ['m', '1'], failed);
  });

  it('where the files of one are changed in place, it goes on with what it has loaded', async () => {
    fleet = new LightFleet({});
    await fleet.addWorker({ id: 'a', files });
    const { models, runner } = await fleet.addWorker({ id: 'b', files });
    const before = runner.loaded.get('m@1');
    fleet.write(models, other);
    await fleet.edit('m', (now) => now);
    const state = await fleet.until('b', ['m', '1'], ({ reason }) => reason !== null);
    expect(state).toMatchObject({ state: 'ready', digest: before?.digest });
    expect(runner.loaded.get('m@1')).toBe(before);
  });
});

it('files changed in place where no other worker serves the version are loaded beside the old', async () => {
  fleet = new LightFleet(modelFiles('m', [1]));
  const { id, runner } = await fleet.addWorker();
  const before = runner.loaded.get('m@1')?.digest;
  fleet.write(fleet.models, { 'm/1/model.onnx': 'new weights' });
  await fleet.edit('m', (now) => now);
  const state = await fleet.until(id, ['m', '1'], ({ digest }) => digest !== before);
  expect(state).toMatchObject({ state: 'ready', reason: null });
  expect(runner.loaded.get('m@1')?.digest).toBe(state.digest);
});

describe('a version that is loaded on demand', () => {
  const yaml = 'load_mode: on_demand';

  it('is loaded by its first request, which waits for it, and has no consumer before', async () => {
    fleet = new LightFleet(modelFiles('lazy', [1], yaml));
    const { id, runner } = await fleet.addWorker();
    expect(runner.loaded.size).toBe(0);
    await Promise.all(Array.from({ length: 40 }, () => fleet.enqueue('lazy', '1')));
    await fleet.untilDrained('lazy');
    expect(await fleet.until(id, ['lazy', '1'], ready)).toMatchObject({ load_mode: 'on_demand' });
  });

  it('is found by a look at the queues where the doorbell was not heard', async () => {
    fleet = new LightFleet(modelFiles('lazy', [1], yaml));
    await fleet.addWorker();
    await fleet.enqueue('lazy', '1', { ring: false });
    await fleet.untilDrained('lazy');
  });

  it('that fails to load does not keep its job: the request ends with the reason', async () => {
    fleet = new LightFleet(modelFiles('lazy', [1], yaml));
    const { id } = await fleet.addWorker({
      onLoad: () => {
        throw new ModelLoadError('lazy/1/model.onnx: not a model at all');
      },
    });
    await fleet.enqueue('lazy', '1');
    await fleet.untilDrained('lazy');
    await fleet.until(id, ['lazy', '1'], failed);
  });

  it('that only another worker has the files of is loaded there', async () => {
    fleet = new LightFleet({});
    await fleet.addWorker({ files: modelFiles('lazy', [1]) });
    const { id } = await fleet.addWorker({ files: modelFiles('lazy', [1, 2], yaml) });
    await fleet.enqueue('lazy', '2', { ring: false });
    await fleet.until(id, ['lazy', '2'], ready);
    await fleet.untilDrained('lazy');
  });

  it('whose version was unloaded by name waits, and runs when it is loaded again', async () => {
    fleet = new LightFleet(modelFiles('m', [1, 2]));
    const { id } = await fleet.addWorker();
    await fleet.edit('m', (now) => ({ ...now, loads: { 1: 'unloaded' } }));
    await fleet.until(id, ['m', '1'], ({ reason }) => reason === 'it was unloaded by name');
    const requestId = await fleet.enqueue('m', '1');
    // Its worker has the queue open for the other version, and gives it back each time.
    await fleet.untilReturned('m', requestId, 3);
    await fleet.edit('m', (now) => ({ ...now, loads: { 1: 'loaded' } }));
    await fleet.untilDrained('m');
  });

  it('of a model whose versions are all unloaded by name waits untouched', async () => {
    fleet = new LightFleet(modelFiles('m', [1]));
    const { id } = await fleet.addWorker();
    await fleet.edit('m', (now) => ({ ...now, loads: { 1: 'unloaded' } }));
    await fleet.until(id, ['m', '1'], unloaded);
    await fleet.enqueue('m', '1');
    await fleet.edit('m', (now) => ({ ...now, loads: { 1: 'loaded' } }));
    await fleet.until(id, ['m', '1'], ready);
    await fleet.untilDrained('m');
  });
});

it('a request that waits for a model that is taken out ends with model_not_found', async () => {
  fleet = new LightFleet(modelFiles('model', [1]));
  const { id } = await fleet.addWorker();
  await fleet.edit('model', (now) => ({ ...now, loads: { 1: 'unloaded' } }));
  await fleet.until(id, ['model', '1'], unloaded);
  const requestId = await fleet.accept('model', '1');
  await fleet.edit('model', (now) => ({ ...now, registered: false }));
  await expect
    .poll(async () => (await fleet.store.read([requestId]))[0])
    .toMatchObject({ status: 'failed', error: { code: 'model_not_found' } });
});

describe('a memory budget', () => {
  const yaml = 'load_mode: on_demand';
  const MIB = 2 ** 20;

  it('is kept by unloading what was not used for longest; pinned models stay', async () => {
    fleet = new LightFleet({
      ...modelFiles('a', [1], yaml),
      ...modelFiles('b', [1], yaml),
      ...modelFiles('c', [1], `${yaml}\npinned: true`),
      ...modelFiles('d', [1], yaml),
    });
    const { id } = await fleet.addWorker({
      env: { REMUDA_WORKER_MEMORY_BUDGET: 'cpu=30MiB' },
      memoryBytes: () => 9 * MIB,
    });
    for (const model of ['c', 'a', 'b', 'd']) {
      await fleet.enqueue(model, '1');
      await fleet.until(id, [model, '1'], ready);
      await fleet.untilDrained(model);
    }
    expect(await fleet.until(id, ['a', '1'], unloaded)).toMatchObject({
      reason: 'unloaded to make room for d@1; the next request loads it again',
    });
    for (const model of ['b', 'c', 'd'])
      expect(await fleet.stateOf(id, model, '1')).toMatchObject({ state: 'ready' });
    const [heartbeat] = await fleet.fleet();
    expect(heartbeat?.devices[0]).toMatchObject({
      memory_budget_bytes: 30 * MIB,
      memory_used_bytes: 27 * MIB,
    });
  });
});

it('twenty workers follow a new desired state', async () => {
  const models = ['a', 'b', 'c'];
  fleet = new LightFleet(Object.assign({}, ...models.map((model) => modelFiles(model, [1, 2]))));
  const keep = (version: string) =>
    Promise.all(
      models.map((model) => fleet.edit(model, (now) => ({ ...now, version_policy: { only: [version] } }))),
    );
  await keep('1');
  await Promise.all(Array.from({ length: 20 }, () => fleet.addWorker()));
  await keep('2');
  await fleet.untilFleet((workers) =>
    workers.every((worker) => worker.models.filter((one) => one.version === '2' && ready(one)).length === 3),
  );
});
