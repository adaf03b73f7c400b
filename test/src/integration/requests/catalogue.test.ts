/** The catalogue: the repository together with what workers publish, and the heartbeats behind "live". */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RemudaError } from '@remuda/core/errors';
import { HeartbeatWriter, readFleet } from '@remuda/core/fleet/heartbeats';
import type { ModelSource } from '@remuda/core/harness/harness';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import { HarnessConfig, type LoadedModel, type WorkerHeartbeat } from '@remuda/schemas';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Rig, setup, signature, submission, until } from './rig.js';

let folder: string;
let rig: Rig;
let inspected: string[];
let inspect: (source: ModelSource) => Promise<ReturnType<typeof signature>>;
const config = HarnessConfig.parse({ harness: 'onnx' });

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'remuda-catalogue-'));
  addVersion('local', '1');
  inspected = [];
  inspect = async ({ model, version, digest }) => signature({ model, version, digest });
  rig = await setup({
    repository: folder,
    inspect: (source) => {
      inspected.push(source.modelId);
      return inspect(source);
    },
  });
});
afterEach(async () => {
  await rig.close();
  rmSync(folder, { recursive: true });
});

function addVersion(model: string, version: string, text = version): void {
  mkdirSync(join(folder, model, version), { recursive: true });
  writeFileSync(join(folder, model, 'model.yaml'), 'harness: onnx\ndescription: from the file\n');
  writeFileSync(join(folder, model, version, 'model.onnx'), text);
}

function heartbeat(
  models: Partial<LoadedModel>[],
  state: WorkerHeartbeat['state'] = 'ready',
): WorkerHeartbeat {
  const at = new Date().toISOString();
  return {
    ...{ worker_id: 'w1', host: 'h', pid: 1, remuda_version: '0', started_at: at, at, state },
    ...{ healthy: true, unhealthy_reason: null, cores: 1, memory_bytes: 1, rss_bytes: 1, devices: [] },
    ...{ cpu: null, memory_free_bytes: null, deployments_revision: 0 },
    ...{ in_flight: 0, rows_per_s: 0, batch_mean: 0, rows_total: 0 },
    models: models.map((model) => ({
      ...{
        model: 'local',
        version: '1',
        digest: 'd',
        device: 'cpu',
        provider: 'cpu',
        state: 'ready',
        reason: null,
      },
      ...model,
    })) as LoadedModel[],
  };
}

async function worker(snapshot: () => WorkerHeartbeat): Promise<HeartbeatWriter> {
  const writer = new HeartbeatWriter({
    ...{ redis: rig.redis, keys: rig.keys, workerId: 'w1', snapshot },
    onError: () => {},
  });
  await writer.start();
  return writer;
}

it('reads what nobody has published once, however many ask, and publishes it', async () => {
  const all = await Promise.all(Array.from({ length: 5 }, () => rig.cases.signatureOf('local')));
  expect(all.map(({ model }) => model)).toEqual(Array(5).fill('local'));
  expect(inspected).toEqual(['local@1']);
  await until('published', async () => (await rig.redis.hexists(rig.keys.signatures(), 'local/1')) === 1);
  await rig.cases.submit(submission({ model: 'local' }));
  expect(inspected).toEqual(['local@1']);
});

it('says why a version cannot be read, and does not try again at once', async () => {
  inspect = () => Promise.reject(new RemudaError('model_load_failed', 'local@1: opset 99 is not supported'));
  for (let i = 0; i < 2; i++) {
    await expect(rig.cases.signatureOf('local')).rejects.toMatchObject({
      code: 'signature_unavailable',
      message: 'local@1: opset 99 is not supported',
    });
  }
  expect(inspected).toHaveLength(1);
  expect((await rig.cases.model('local')).problems).toEqual(['local@1: opset 99 is not supported']);
});

it('knows a model that lies nowhere here but was published', async () => {
  expect((await rig.cases.signatureOf('model')).digest).toBe('digest-1');
  const names = (await rig.cases.models()).map(({ name }) => name);
  expect(names).toEqual(['local', 'model']);
  expect(inspected).toEqual([]);
});

it('believes the workers where the local file is another, and notes it', async () => {
  await publishSignature(rig.redis, rig.keys, signature({ model: 'local', digest: 'theirs' }), config);
  const writer = await worker(() => heartbeat([{ digest: 'theirs' }]));
  await rig.cases.fleetView.refresh();
  await until('it is seen', async () => (await rig.cases.signatureOf('local')).digest === 'theirs');
  const detail = await rig.cases.model('local');
  expect(detail.problems).toEqual(['local@1: the workers run another file or configuration than lies here']);
  expect(detail.workers).toBe(1);
  await writer.stop();
});

it('reads the file anew where what was published belongs to a former one that nobody runs', async () => {
  await publishSignature(rig.redis, rig.keys, signature({ model: 'local', digest: 'former' }), config);
  const found = await rig.cases.signatureOf('local');
  expect(found.digest).not.toBe('former');
  expect(inspected).toEqual(['local@1']);
});

it('sends traffic to a new version once it is served, and before that to the former', async () => {
  const served = await rig.cases.signatureOf('local');
  await publishSignature(rig.redis, rig.keys, served, config);
  addVersion('local', '2');
  await until('the new version is listed', async () =>
    (await rig.cases.model('local')).versions.includes('2'),
  );
  expect((await rig.cases.signatureOf('local')).version).toBe('1');
  // That somebody has asked for it, so that its file was read, does not make it served.
  const { digest } = await rig.cases.signatureOf('local', '2');
  await rig.cases.signatureOf('local', '2');
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect((await rig.cases.signatureOf('local')).version).toBe('1');
  await publishSignature(rig.redis, rig.keys, signature({ model: 'local', version: '2', digest }), config);
  await until('it is served', async () => (await rig.cases.signatureOf('local')).version === '2');
});

it('finds a model that was added after the start', async () => {
  addVersion('fresh', '1');
  await until('it is found', () =>
    rig.cases.signatureOf('fresh').then(
      () => true,
      () => false,
    ),
  );
});

it('says of a model whose files nobody has any more that it can be taken out, and accepts its requests as before', async () => {
  const writer = await worker(() => heartbeat([{ model: 'local' }]));
  await until('the worker is seen', async () => {
    await rig.cases.fleetView.refresh();
    return rig.cases.fleetView.workers.length === 1;
  });
  const gone = (await rig.cases.models()).find(({ name }) => name === 'model');
  expect(gone?.problems).toEqual([
    'no worker has its files any more; `remuda models unregister model` takes it out',
  ]);
  expect((await rig.cases.submit(submission())).record.status).toBe('queued');
  await writer.stop();
});

it('takes a worker as live while its heartbeats come, and drops it when it stops or dies', async () => {
  const writer = await worker(() => heartbeat([{ model: 'model' }]));
  await rig.cases.fleetView.refresh();
  expect((await rig.cases.submit(submission())).record.notices).toEqual([]);
  expect((await rig.cases.fleet()).workers.map(({ worker_id }) => worker_id)).toEqual(['w1']);
  await writer.stop();
  await rig.cases.fleetView.refresh();
  expect((await rig.cases.submit(submission())).record.notices).toHaveLength(1);

  await rig.redis.zadd(rig.keys.workers(), Date.now(), 'dead');
  expect(await readFleet(rig.redis, rig.keys)).toEqual([]);
  expect(await rig.redis.zcard(rig.keys.workers())).toBe(0);
});

it('routes nothing new to a worker that drains', async () => {
  const writer = await worker(() => heartbeat([{ model: 'model' }], 'draining'));
  await rig.cases.fleetView.refresh();
  expect(rig.cases.fleetView.liveClasses('model').size).toBe(0);
  await writer.stop();
});

it('what the workers have loaded goes on serving where model.yaml has become faulty, and the fault is told', async () => {
  await publishSignature(rig.redis, rig.keys, signature({ model: 'local' }), config);
  const writer = await worker(() => heartbeat([{ digest: 'digest-1' }]));
  await rig.cases.fleetView.refresh();
  writeFileSync(join(folder, 'local', 'model.yaml'), 'harness: onnx\nmax_batch_sise: 3\n');
  await until('the fault is seen', async () => {
    return (await rig.cases.model('local')).problems.some((problem) => problem.includes('max_batch_sise'));
  });
  const { record } = await rig.cases.submit(submission({ model: 'local' }));
  expect(record.version).toBe('1');
  await writer.stop();
});
