/** The steward over a real Redis: tests write heartbeats as workers would, and take turns by hand. */

import { HeartbeatWriter } from '@remuda/core/fleet/heartbeats';
import { DeploymentView } from '@remuda/core/models/deployment-view';
import { Steward } from '@remuda/core/models/steward';
import { silentLogger } from '@remuda/core/observability/logger';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import { HarnessConfig, type LoadedModel, type WorkerHeartbeat } from '@remuda/schemas';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Rig, setup, signature, until } from '../requests/rig.js';

let rig: Rig;
let view: DeploymentView;
let stewards: Steward[];
beforeEach(async () => {
  rig = await setup();
  stewards = [];
  view = newView();
});
afterEach(async () => {
  for (const steward of stewards) await steward.stop();
  await rig.close();
});

const raise = (error: Error): never => {
  throw error;
};

function newView(): DeploymentView {
  const { redis, keys } = rig;
  return new DeploymentView({ redis, subscriber: redis, keys, onError: raise });
}

function newSteward(over: { view?: DeploymentView } = {}): Steward {
  const { redis, keys, metrics } = rig;
  const steward = new Steward({ redis, keys, view, metrics, logger: silentLogger, onError: raise, ...over });
  stewards.push(steward);
  return steward;
}

async function beat(worker: string, versions: Record<string, LoadedModel['state']>, reason?: string) {
  const models = Object.entries(versions).map(([version, state]) => ({
    model: 'model',
    version,
    device: 'cpu',
    state,
    reason: reason ?? null,
    load_mode: 'eager' as const,
  }));
  const snapshot = () => ({ worker_id: worker, state: 'ready', models }) as unknown as WorkerHeartbeat;
  const { redis, keys } = rig;
  await new HeartbeatWriter({ redis, keys, workerId: worker, snapshot, onError: raise }).beat();
}

const served = async () => (await view.store.serving()).get('model')?.refs;
const events = async () => (await view.store.history('model', 50)).map(({ what }) => what);
const moves = async (kind: string) => {
  const line = new RegExp(`remuda_reference_moves_total\\{model="model",kind="${kind}"\\} (\\d+)`);
  return Number(line.exec(await rig.metrics.text())?.[1] ?? 0);
};

it('moves default when every worker has the new version, and writes down when and why', async () => {
  const steward = newSteward();
  await beat('a', { '1': 'ready' });
  await beat('b', { '1': 'ready' });
  await steward.turn();
  expect(await served()).toMatchObject({ default: { version: '1', previous: null } });
  await beat('a', { '1': 'ready', '2': 'ready' });
  await beat('b', { '1': 'ready', '2': 'loading' });
  await steward.turn();
  expect(await served()).toMatchObject({ default: { version: '1' } });
  await beat('b', { '1': 'ready', '2': 'ready' });
  await steward.turn();
  expect(await served()).toMatchObject({ default: { version: '2', previous: '1' } });
  const [last] = await view.store.history('model', 1);
  expect(last).toMatchObject({ who: 'fleet', what: 'moved', detail: { ref: 'default', from: '1', to: '2' } });
  expect(await moves('moved')).toBe(2);
});

it('follows what the admin API sets, at the next turn', async () => {
  const steward = newSteward();
  await beat('a', { '1': 'ready', '2': 'ready' });
  await steward.turn();
  const change = (aliases: Record<string, string>) =>
    view.store.edit({
      model: 'model',
      who: 'test',
      what: 'alias_set',
      detail: {},
      change: (current) => ({ ...current, aliases }),
    });
  await change({ stable: '1', old: '1' });
  await view.refresh();
  await steward.turn();
  expect(await served()).toMatchObject({
    stable: { version: '1' },
    old: { version: '1' },
    default: { version: '1', previous: '2' },
  });
  await change({ stable: '1' });
  await view.refresh();
  await steward.turn();
  expect(Object.keys((await served()) ?? {}).sort()).toEqual(['default', 'stable']);
});

it('tells once of a version that failed, also when another worker becomes the steward', async () => {
  const first = newSteward();
  await beat('a', { '1': 'ready' });
  await first.turn();
  await beat('b', { '2': 'failed' }, 'golden case 1 differs');
  for (let i = 0; i < 3; i++) await first.turn();
  await first.stop();
  const second = newSteward();
  for (let i = 0; i < 3; i++) await second.turn();
  expect(await events()).toEqual(['held', 'moved']);
  expect(await served()).toMatchObject({ default: { version: '1' } });
  await beat('b', { '2': 'failed' }, 'no such file');
  await second.turn();
  expect(await events()).toEqual(['held', 'held', 'moved']);
});

it('is one process at a time; another follows when that one stops', async () => {
  const [first, second] = [newSteward(), newSteward()];
  await first.turn();
  await beat('a', { '1': 'ready' });
  await second.turn();
  expect(await served()).toBeUndefined();
  await first.stop();
  await second.turn();
  expect(await served()).toMatchObject({ default: { version: '1' } });
});

it('a steward that lost its lease while it stood still changes nothing', async () => {
  const refs = { default: { version: '1', previous: null, since: new Date().toISOString(), reason: 'r' } };
  await rig.redis.set(rig.keys.stewardLease(), 'the new one');
  expect(await view.store.serve({ model: 'model', refs }, 'the old one')).toBe(false);
  expect(await served()).toBeUndefined();
  expect(await view.store.serve({ model: 'model', refs }, 'the new one')).toBe(true);
});

it('forgets a worker as soon as its heartbeat is gone', async () => {
  const steward = newSteward();
  await beat('a', { '1': 'ready' });
  await beat('b', { '1': 'ready' });
  await steward.turn();
  await beat('a', { '1': 'ready', '2': 'ready' });
  await steward.turn();
  expect(await served()).toMatchObject({ default: { version: '1' } });
  await rig.redis.del(rig.keys.worker('b'));
  await until('it has moved', async () => {
    await steward.turn();
    return (await served())?.default?.version === '2';
  });
});

it('goes by the version policy that the workers have published', async () => {
  const { redis, keys } = rig;
  const config = HarnessConfig.parse({ harness: 'onnx', version_policy: { only: [1] } });
  for (const version of ['1', '2']) await publishSignature(redis, keys, signature({ version }), config);
  const steward = newSteward();
  await beat('a', { '1': 'ready', '2': 'ready' });
  await steward.turn();
  expect(await served()).toMatchObject({ default: { version: '1' } });
});
