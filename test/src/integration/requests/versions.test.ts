/** Which model and version a request goes to: desired state, what is served and who has it ready, over a real Redis. */
import { HEARTBEAT_TTL_MS } from '@remuda/core/fleet/heartbeats';
import { queueName } from '@remuda/core/queue/partitions';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import { closeRedis, connectRedis, type Redis, waitUntilReady } from '@remuda/core/store/redis';
import {
  HarnessConfig,
  type LoadedModel,
  type ModelDeployment,
  type ModelSignature,
  type SignatureTensor,
} from '@remuda/schemas';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { heartbeat } from '../../support/heartbeats.js';
import { PARTITION, type Rig, setup, signature, stored, submission, until } from './rig.js';

let rig: Rig;
/** What the next draw of a split is. */
let draw: number;
beforeEach(async () => {
  draw = 0.5;
  rig = await setup({ random: () => draw });
});
afterEach(() => rig.close());

async function publish(over: Partial<ModelSignature>, config: Record<string, unknown> = {}): Promise<void> {
  const { redis, keys } = rig;
  await publishSignature(redis, keys, signature(over), HarnessConfig.parse({ harness: 'onnx', ...config }));
}

/** One worker that says it has these. */
async function workerHas(...models: Partial<LoadedModel>[]): Promise<void> {
  const { redis, keys } = rig;
  await redis.set(keys.worker('w1'), JSON.stringify(heartbeat(models)), 'PX', HEARTBEAT_TTL_MS);
  await redis.zadd(keys.workers(), Date.now(), 'w1');
  await rig.cases.fleetView.refresh();
}

/** The catalogue hears of what was published within some seconds; a version that is not known is looked for at once. */
async function known(model: string, version: string): Promise<void> {
  await until(`${model}@${version} is known`, () =>
    rig.cases.signatureOf(model, version).then(
      () => true,
      () => false,
    ),
  );
}

async function want(change: (current: ModelDeployment) => ModelDeployment, model = 'model'): Promise<void> {
  await rig.cases.deployments.store.edit({ model, who: 'test', what: 'changed', detail: {}, change });
  await rig.cases.deployments.refresh();
}

async function serve(version: string): Promise<void> {
  const ref = { version, previous: null, since: new Date().toISOString(), reason: 'by the version policy' };
  await rig.cases.deployments.store.serve({ model: 'model', refs: { default: ref } });
  await rig.cases.deployments.refresh();
}

describe('the version', () => {
  beforeEach(async () => {
    await publish({ version: '2', digest: 'digest-2' });
    await known('model', '2');
  });

  it('is what the fleet serves, and stands in record and ticket with the reason', async () => {
    await serve('1');
    const { record } = await rig.cases.submit(submission());
    expect(record).toMatchObject({
      version: '1',
      route: { version_reason: 'version 1 is served: by the version policy' },
    });
    expect((await stored(rig.store, record.request_id))?.document.version).toBe('1');
    expect((await rig.cases.model('model')).default_version).toBe('1');
  });

  it('moves when the fleet says so', async () => {
    await serve('1');
    expect((await rig.cases.submit(submission())).record.version).toBe('1');
    await rig.cases.deployments.store.serve({
      model: 'model',
      refs: {
        default: { version: '2', previous: '1', since: new Date().toISOString(), reason: 'it is ready' },
      },
    });
    await until(
      'the message is heard',
      () => rig.cases.deployments.serving('model')?.refs.default?.version === '2',
    );
    expect((await rig.cases.submit(submission())).record.version).toBe('2');
  });

  it('of a split is drawn by weight among those that are ready', async () => {
    await workerHas({ version: '1' }, { version: '2', digest: 'digest-2' });
    await want((now) => ({ ...now, split: { stable: '1', weights: { 1: 70, 2: 30 }, rollback: null } }));
    draw = 0.29;
    const canary = (await rig.cases.submit(submission())).record;
    expect([canary.version, canary.route.version_reason]).toEqual([
      '2',
      'the split gives 30 % to 2, by chance',
    ]);
    draw = 0.31;
    expect((await rig.cases.submit(submission())).record.version).toBe('1');
    await workerHas({ version: '1' });
    draw = 0.29;
    expect((await rig.cases.submit(submission())).record.version).toBe('1');
  });

  it('sticks to a key', async () => {
    await workerHas({ version: '1' }, { version: '2', digest: 'digest-2' });
    await want((now) => ({ ...now, split: { stable: '1', weights: { 1: 50, 2: 50 }, rollback: null } }));
    const of = async (sticky_key: string): Promise<string> =>
      (await rig.cases.submit(submission({ metadata: { priority: 5, sticky_key } }))).record.version;
    const keys = Array.from({ length: 20 }, (_, at) => `user-${at}`);
    const first = await Promise.all(keys.map(of));
    expect(new Set(first)).toEqual(new Set(['1', '2']));
    expect(await Promise.all(keys.map(of))).toEqual(first);
  });

  it('of an alias is where it leads; one that is not there is told', async () => {
    await want((now) => ({ ...now, aliases: { beta: '1' } }));
    expect((await rig.cases.resolve({ model: 'model', version: 'beta' })).signature.version).toBe('1');
    await expect(rig.cases.resolve({ model: 'model', version: 'gamma' })).rejects.toMatchObject({
      code: 'alias_not_found',
      details: { aliases: ['beta'] },
    });
    expect((await rig.cases.model('model')).aliases).toEqual({ beta: '1' });
  });

  it('of a model that was taken out is none', async () => {
    await want((now) => ({ ...now, registered: false }));
    await expect(rig.cases.resolve({ model: 'model' })).rejects.toMatchObject({
      code: 'model_not_found',
      message: expect.stringContaining('was taken out'),
    });
    expect((await rig.cases.models()).map(({ name }) => name)).toEqual([]);
  });
});

describe('a fallback', () => {
  beforeEach(async () => {
    await publish({}, { fallback_model: 'spare' });
    await publish({ model: 'spare', digest: 'spare-1' });
    await known('spare', '1');
    await until('the configuration is known', async () => {
      return (await rig.cases.model('model')).config?.fallback_model === 'spare';
    });
  });
  const spare: Partial<LoadedModel> = { model: 'spare', digest: 'spare-1' };

  it('answers while no live worker has the model or could load it, and the record says so', async () => {
    await workerHas(spare);
    const { record } = await rig.cases.submit(submission());
    expect(record).toMatchObject({
      model: 'spare',
      route: { fallback_for: 'model' },
      notices: ['spare answers in place of model: no live worker has model@1 ready or could load it'],
    });
    expect(await rig.queues.of({ ...PARTITION, model: 'spare' }).has(record.request_id)).toBe(true);
    expect((await rig.cases.admin.describe('model')).fallback).toBe('spare');
  });

  it('answers while the runs of every ready copy keep failing', async () => {
    await workerHas(spare, { breaker: 'open' });
    expect((await rig.cases.submit(submission())).record.model).toBe('spare');
    await workerHas(spare, { breaker: 'half_open' });
    expect((await rig.cases.submit(submission())).record.model).toBe('model');
  });

  it('does not answer while the model is being loaded, or could be', async () => {
    for (const state of ['loading', 'unloaded', 'ready'] as const) {
      await workerHas(spare, { state });
      expect((await rig.cases.submit(submission())).record.model).toBe('model');
    }
  });

  it('does not answer who names a version by number', async () => {
    await workerHas(spare);
    const named = { ...submission(), options: { version: '1' } };
    expect((await rig.cases.submit(named)).record.model).toBe('model');
  });

  it('that is not ready itself, or takes other inputs, does not answer, which is shown', async () => {
    await workerHas();
    expect((await rig.cases.submit(submission())).record.model).toBe('model');
    expect((await rig.cases.admin.describe('model')).fallback).toBeNull();
    expect((await rig.cases.model('model')).problems).toEqual([
      'model: fallback_model spare cannot answer for it: its version 1 is not ready on a live worker',
      'no worker has its files any more; `remuda models unregister model` takes it out',
    ]);
    const [x] = signature().inputs;
    await publish({
      model: 'spare',
      digest: 'spare-1',
      inputs: [{ ...(x as SignatureTensor), datatype: 'INT64' }],
    });
    await workerHas(spare);
    await until('the other signature is known', async () => {
      const [problem] = (await rig.cases.model('model')).problems;
      return (
        problem ===
        'model: fallback_model spare cannot answer for it: its inputs differ: input x: datatype FP32 and INT64'
      );
    });
    expect((await rig.cases.submit(submission())).record.model).toBe('model');
  });

  it('is the same request when it is sent again', async () => {
    await workerHas(spare);
    const first = await rig.cases.submit(submission({ id: 'mine' }));
    expect(first.record.model).toBe('spare');
    await workerHas(spare, {});
    const again = await rig.cases.submit(submission({ id: 'mine' }));
    expect([again.known, again.record.model]).toEqual([true, 'spare']);
  });
});

describe('the doorbell', () => {
  let ears: Redis;
  let heard: string[];
  beforeEach(async () => {
    const url = process.env.REMUDA_TEST_REDIS_URL as string;
    ears = connectRedis({ url, role: 'subscriber', name: 'test-ears', onError() {} });
    await waitUntilReady(ears, 5_000);
    heard = [];
    ears.on('message', (_channel, queue: string) => heard.push(queue));
    await ears.subscribe(rig.keys.doorbell());
  });
  afterEach(() => closeRedis(ears));

  it('rings for a queue whose version no live worker has ready, once for many requests', async () => {
    await Promise.all(Array.from({ length: 20 }, () => rig.cases.submit(submission())));
    await until('it rings', () => heard.length > 0);
    expect(new Set(heard)).toEqual(new Set([queueName(PARTITION)]));
    expect(heard.length).toBeLessThan(20);
  });

  it('is silent for one that is ready', async () => {
    await workerHas({});
    await rig.cases.submit(submission());
    // Messages keep their order: what comes after it has been heard, and it has not.
    await rig.redis.publish(rig.keys.doorbell(), 'last');
    await until('the last is heard', () => heard.includes('last'));
    expect(heard).toEqual(['last']);
  });
});
