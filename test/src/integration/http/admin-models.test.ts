/** The admin API of models: what it writes, what it shows, and what it refuses without touching what serves. */
import { HEARTBEAT_TTL_MS } from '@remuda/core/fleet/heartbeats';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import {
  AdminModel,
  AdminModelList,
  HarnessConfig,
  type LoadedModel,
  ModelEdited,
  ModelHistory,
} from '@remuda/schemas';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { heartbeat } from '../../support/heartbeats.js';
import { until } from '../requests/rig.js';
import { type Answer, type Rig, setup, signature, tensor } from './rig.js';

const ROWS = '/v1/admin/models/rows';
let rig: Rig;
beforeAll(async () => {
  rig = await setup();
  const config = HarnessConfig.parse({ harness: 'onnx' });
  const wider = { inputs: [tensor('x', 'FP32', ['N', 4])], version: '3', digest: 'wider' };
  for (const version of [{ version: '2', digest: 'second' }, wider]) {
    const one = signature('rows', [tensor('x', 'FP32', ['N', 3])], version);
    await publishSignature(rig.redis, rig.keys, one, config);
  }
  await publishSignature(
    rig.redis,
    rig.keys,
    signature('leaning', [tensor('x', 'FP32', ['N', 3])]),
    HarnessConfig.parse({ harness: 'onnx', fallback_model: 'text' }),
  );
  await until('all are known', async () => {
    const [rows, leaning] = [await rig.call('GET', ROWS), await rig.call('GET', '/v1/admin/models/leaning')];
    return leaning.status === 200 && AdminModel.parse(rows.body).versions.length === 3;
  });
});
afterAll(() => rig.close());
beforeEach(async () => {
  // Each test begins with what nobody has touched but for the history.
  await rig.redis.hdel(rig.keys.deployments(), 'rows', 'text', 'leaning', 'tuned');
  await rig.redis.incr(rig.keys.deploymentsRevision());
  await rig.redis.publish(rig.keys.modelsChanged(), 'rows');
  await until('it is as nobody has touched it', async () => (await show()).deployment.revision === 0);
});

const json = { 'content-type': 'application/json' };
const send = (method: string, path: string, body: unknown, headers = {}): Promise<Answer> =>
  rig.call(method, path, { body: JSON.stringify(body), headers: { ...json, ...headers } });

async function edited(answer: Promise<Answer>): Promise<ModelEdited> {
  const { status, body } = await answer;
  if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`);
  return ModelEdited.parse(body);
}

async function show(path = ROWS): Promise<AdminModel> {
  return AdminModel.parse((await rig.call('GET', path)).body);
}

async function history(): Promise<ModelHistory['events']> {
  return ModelHistory.parse((await rig.call('GET', `${ROWS}/history?limit=5`)).body).events;
}

/** A worker that says it has these. */
async function workerHas(models: Partial<LoadedModel>[], deployments_revision = 0): Promise<void> {
  const text = JSON.stringify(heartbeat(models, { deployments_revision }));
  await rig.redis.set(rig.keys.worker('w1'), text, 'PX', HEARTBEAT_TTL_MS);
  await rig.redis.zadd(rig.keys.workers(), Date.now(), 'w1');
}

describe('an edit', () => {
  it('is in the desired state at once, with who made it and what in the history', async () => {
    const { deployment } = await edited(
      send('PUT', `${ROWS}/aliases/stable`, { version: '1' }, { 'remuda-actor': 'ada' }),
    );
    expect(deployment).toMatchObject({ aliases: { stable: '1' }, updated_by: 'ada' });
    expect((await show()).deployment).toEqual(deployment);
    expect((await history())[0]).toMatchObject({
      who: 'ada',
      what: 'alias_set',
      detail: { alias: 'stable', version: '1' },
      revision: deployment.revision,
    });
  });

  it('by nobody in particular has the address of the caller', async () => {
    await edited(send('POST', `${ROWS}:scale`, { instances: 2 }));
    expect((await history())[0]).toMatchObject({
      who: '127.0.0.1',
      what: 'scaled',
      detail: { instances: 2 },
    });
  });

  it('changes settings, and null gives one back to model.yaml', async () => {
    const body = { load_mode: 'on_demand', pinned: true, settings: { timeout_ms: 500 } };
    expect((await edited(send('PATCH', ROWS, body))).deployment).toMatchObject(body);
    const { deployment } = await edited(
      send('PATCH', ROWS, { pinned: null, settings: { timeout_ms: null } }),
    );
    expect(deployment).toMatchObject({ load_mode: 'on_demand', pinned: null, settings: {} });
  });

  it('moves requests once it says where they go', async () => {
    await edited(send('PUT', `${ROWS}/aliases/stable`, { version: '1' }));
    const { body } = await rig.post('/v1/models/rows/requests', { inputs: { x: [[1, 2, 3]] } });
    expect([body.version, body.route]).toMatchObject([
      '1',
      { version_reason: 'alias stable leads to version 1' },
    ]);
    const named = await rig.post('/v1/models/rows/requests', { inputs: { x: [[1, 2, 3, 4]] }, version: '3' });
    expect([named.status, named.body.version]).toEqual([202, '3']);
  });
});

describe('loading and unloading', () => {
  it('is by number, by alias, or without a body', async () => {
    await edited(send('PUT', `${ROWS}/aliases/beta`, { version: '2' }));
    expect((await edited(send('POST', `${ROWS}:load`, { version: 'beta' }))).deployment.loads).toEqual({
      2: 'loaded',
    });
    expect((await edited(send('POST', `${ROWS}:unload`, { version: '1' }))).deployment.loads).toEqual({
      1: 'unloaded',
      2: 'loaded',
    });
    expect((await edited(rig.call('POST', `${ROWS}:load`))).deployment.loads).toEqual({
      2: 'loaded',
      3: 'loaded',
    });
  });

  it('of all versions makes requests refused, with the remedy', async () => {
    const { notices } = await edited(rig.call('POST', `${ROWS}:unload`));
    expect(notices).toEqual([
      'no version of rows may be loaded now: requests for it are refused, unless its model.yaml names a fallback_model',
    ]);
    const { status, body } = await rig.post('/v1/models/rows/requests', { inputs: { x: [[1, 2, 3]] } });
    expect([status, body.code]).toEqual([409, 'model_not_loaded']);
    expect(body.detail).toBe(
      'rows has no version loaded: each was unloaded by name; load it with POST /v1/admin/models/rows:load',
    );
    expect((await show()).default_version).toBeNull();
  });
});

describe('a split', () => {
  it('is set and ended', async () => {
    const split = { stable: '1', weights: { 1: 90, 2: 10 }, rollback: {} };
    const { deployment } = await edited(send('PUT', `${ROWS}/split`, split));
    expect(deployment.split?.rollback).toEqual({
      min_requests: 200,
      max_error_rate_increase: 0.02,
      max_p95_ratio: 1.5,
    });
    expect((await edited(rig.call('DELETE', `${ROWS}/split`))).deployment.split).toBeNull();
  });

  it('of versions that do not take the same is refused, and what was before stays', async () => {
    await edited(send('PUT', `${ROWS}/split`, { stable: '1', weights: { 1: 90, 2: 10 } }));
    const { status, body } = await send('PUT', `${ROWS}/split`, { stable: '1', weights: { 1: 50, 3: 50 } });
    expect([status, body.errors]).toEqual([
      422,
      [
        {
          path: 'weights.3',
          expected: 'a version that takes and gives what 1 does',
          received: '"3": input x: shape [N, 3] and [N, 4]',
        },
      ],
    ]);
    expect((await show()).deployment.split?.weights).toEqual({ 1: 90, 2: 10 });
  });
});

describe('a bad edit', () => {
  it.each([
    ['PUT', '/aliases/beta', { version: '9' }, 404, 'version_not_found', 'version'],
    ['PUT', '/aliases/default', { version: '1' }, 422, 'invalid_request', 'path.alias'],
    ['PUT', '/aliases/beta', { version: 1 }, 422, 'invalid_request', 'version'],
    ['DELETE', '/aliases/beta', undefined, 404, 'alias_not_found', undefined],
    ['PUT', '/split', { stable: '1', weights: { 1: 60, 2: 30 } }, 422, 'invalid_request', 'weights'],
    ['PUT', '/split', { stable: '1', weights: { 1: 110, 2: -10 } }, 422, 'invalid_request', 'weights.1'],
    ['PUT', '/split', { stable: '1', weights: { 1: 50, 9: 50 } }, 422, 'invalid_request', 'weights.9'],
    ['PUT', '/split', { stable: '2', weights: { 1: 100 } }, 422, 'invalid_request', 'stable'],
    ['PUT', '/shadow', { version: 'gone' }, 422, 'invalid_request', 'version'],
    ['PUT', '/shadow', { version: '2', sample: 2 }, 422, 'invalid_request', 'sample'],
    ['POST', ':load', { version: '9' }, 404, 'version_not_found', undefined],
    ['POST', ':load', { versions: '1' }, 422, 'invalid_request', 'versions'],
    ['POST', ':scale', { instances: 0 }, 422, 'invalid_request', 'instances'],
    ['PATCH', '', {}, 422, 'invalid_request', ''],
    ['PATCH', '', { max_batch_size: 4 }, 422, 'invalid_request', 'max_batch_size'],
    ['PATCH', '', { settings: { timeout_ms: 'long' } }, 422, 'invalid_request', 'settings.timeout_ms'],
    ['POST', ':frob', {}, 404, 'route_not_found', undefined],
  ])('%s %s %j is %i %s at %s, and nothing is changed', async (method, path, given, status, code, at) => {
    const answer =
      given === undefined ? await rig.call(method, ROWS + path) : await send(method, ROWS + path, given);
    expect([answer.status, answer.body.code, answer.body.errors?.[0]?.path]).toEqual([status, code, at]);
    expect((await show()).deployment.revision).toBe(0);
  });

  it('of a model that is not there is 404, with near names', async () => {
    const { status, body } = await send('POST', '/v1/admin/models/row:load', {});
    expect([status, body.code, body.suggestions]).toEqual([404, 'model_not_found', ['rows']]);
  });
});

describe('registering', () => {
  it('a new name needs a source', async () => {
    const { status, body } = await send('POST', '/v1/admin/models', { name: 'fresh' });
    expect([status, body.errors?.[0]?.path]).toEqual([422, 'source']);
  });

  it('a new model is listed before its files are anywhere, and says so to requests', async () => {
    const body = { name: 'fresh', source: 'http://127.0.0.1:1/fresh/manifest.json', load_mode: 'on_demand' };
    const answer = await send('POST', '/v1/admin/models', body);
    expect([answer.status, answer.headers.get('location')]).toEqual([201, '/v1/admin/models/fresh']);
    const list = AdminModelList.parse((await rig.call('GET', '/v1/admin/models')).body).models;
    expect(list.find(({ model }) => model === 'fresh')).toMatchObject({
      registered: true,
      source: 'http://127.0.0.1:1/fresh/manifest.json',
      load_mode: 'on_demand',
      versions: [],
      default_version: null,
    });
    const { status, body: problem } = await rig.post('/v1/models/fresh/requests', { inputs: { x: [1] } });
    expect([status, problem.code]).toEqual([503, 'signature_unavailable']);
  });

  it('a source that is none is refused with its place', async () => {
    const given = { name: 'fresh', source: { type: 'ftp', url: 'ftp://x' } };
    const { status, body } = await send('POST', '/v1/admin/models', given);
    expect([status, body.errors?.[0]?.path]).toEqual([422, 'source.type']);
  });

  it('is undone: requests are refused, who falls back to it is named, and it can be registered again', async () => {
    await edited(send('POST', '/v1/admin/models', { name: 'text', source: './models/text' }));
    const { notices } = await edited(rig.call('DELETE', '/v1/admin/models/text'));
    expect(notices).toEqual(['leaning falls back to text, which cannot answer for it any more']);
    const refused = await rig.post('/v1/models/text/requests', { inputs: { words: ['a'] } });
    expect([refused.status, refused.body.code]).toEqual([404, 'model_not_found']);
    expect(refused.body.detail).toContain('text was taken out');
    const again = await rig.call('POST', '/v1/admin/models/text:load');
    expect(again.status).toBe(404);
    expect((await show('/v1/admin/models/text')).deployment.registered).toBe(false);
    await edited(send('POST', '/v1/admin/models', { name: 'text', source: './models/text' }));
    expect((await rig.post('/v1/models/text/requests', { inputs: { words: ['a'] } })).status).toBe(202);
  });
});

describe('what is shown of a model', () => {
  it('is each version with its digest, who has it in which state, and what is under way', async () => {
    const { deployment } = await edited(send('PUT', `${ROWS}/aliases/stable`, { version: '2' }));
    const rows = { model: 'rows', digest: 'digest-of-rows' };
    await workerHas([
      { ...rows, version: '1' },
      { ...rows, version: '2', digest: 'second', state: 'warming' },
      { ...rows, version: '3', digest: 'wider', state: 'failed', reason: 'golden case a: y[0] differs' },
    ]);
    await until('the heartbeat is seen', async () => (await show()).versions[0]?.copies.length === 1);
    const { versions, convergence, problems } = await show();
    expect(
      versions.map(({ version, digest, aliases, wanted }) => [version, digest, aliases, wanted]),
    ).toEqual([
      ['1', 'digest-of-rows', [], 'idle'],
      ['2', 'second', ['stable'], 'load'],
      ['3', 'wider', [], 'load'],
    ]);
    expect(versions[1]?.copies[0]).toMatchObject({ worker_id: 'w1', device: 'cpu', state: 'warming' });
    expect(convergence).toEqual({
      done: false,
      waiting_for: ['w1 takes in the change', 'w1: 2 on cpu is warming'],
      failed: ['w1: 3 on cpu: golden case a: y[0] differs'],
    });
    expect(problems).toEqual(['rows@3 on worker w1: golden case a: y[0] differs']);
    await workerHas([{ ...rows, version: '2', digest: 'second' }], deployment.revision);
    await until('the reference is to move', async () => {
      const { waiting_for } = (await show()).convergence;
      return waiting_for.includes('stable moves to 2') && waiting_for.includes('default moves to 2');
    });
  });

  it('in the public list says where aliases lead and how many copies are in which state', async () => {
    await edited(send('PUT', `${ROWS}/aliases/stable`, { version: '1' }));
    await workerHas([
      { model: 'rows', version: '1' },
      { model: 'rows', version: '2', state: 'loading' },
    ]);
    await until('the heartbeat is seen', async () => {
      const { body } = await rig.call('GET', '/v1/models/rows');
      return JSON.stringify(body.states) === JSON.stringify({ ready: 1, loading: 1 });
    });
    const { body } = await rig.call('GET', '/v1/models/rows');
    expect(body).toMatchObject({ aliases: { stable: '1' }, default_version: '1', workers: 1 });
  });
});

describe('what comes all at once, or in one piece', () => {
  it('edits of one model that come together are all made', async () => {
    const names = Array.from({ length: 60 }, (_, i) => `many${i}`);
    await Promise.all(names.map((name) => edited(send('PUT', `${ROWS}/aliases/${name}`, { version: '1' }))));
    expect(Object.keys((await show()).deployment.aliases).sort()).toEqual(names.sort());
  });

  it('a body that is too large for what every process reads is refused', async () => {
    const digests = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [i + 1, 'a'.repeat(64)]));
    const { status, body } = await send('PATCH', ROWS, { digests });
    expect(status).toBe(413);
    expect(body).toMatchObject({ detail: expect.stringContaining('at most 262144 bytes') });
  });

  it('a run can be given a day at most: timers end at once beyond 24.8', async () => {
    const { status } = await send('PATCH', ROWS, { settings: { timeout_ms: 3_000_000_000 } });
    expect(status).toBe(422);
  });
});

describe('an edit that leaves little to serve', () => {
  it('is told when no version may be loaded any more', async () => {
    const { notices } = await edited(send('PATCH', ROWS, { load_mode: 'explicit' }));
    expect(notices).toEqual([expect.stringContaining('no version of rows may be loaded now')]);
  });

  it('is told when the policy names no version that is there', async () => {
    const { notices } = await edited(send('PATCH', ROWS, { version_policy: { only: ['77'] } }));
    expect(notices).toEqual([
      'the version_policy keeps none of the versions of rows that are there: 1, 2, 3',
    ]);
  });
});
