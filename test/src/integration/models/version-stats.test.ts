/** Counts of versions while traffic is split, and what the steward makes of them, over a real Redis. */
import { HeartbeatWriter } from '@remuda/core/fleet/heartbeats';
import { systemClock } from '@remuda/core/lifecycle/clock';
import { DeploymentView } from '@remuda/core/models/deployment-view';
import { shadowIdOf } from '@remuda/core/models/shadow-id';
import { readSplitStats } from '@remuda/core/models/split-stats';
import { Steward } from '@remuda/core/models/steward';
import { VersionStats } from '@remuda/core/models/version-stats';
import { silentLogger } from '@remuda/core/observability/logger';
import type { LoadedModel, ModelDeployment, TrafficSplit, WorkerHeartbeat } from '@remuda/schemas';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Rig, setup } from '../requests/rig.js';

const RULE = { min_requests: 100, max_error_rate_increase: 0.02, max_p95_ratio: 1.5 };
const SPLIT: TrafficSplit = { stable: '1', weights: { '1': 90, '2': 10 }, rollback: RULE };

let rig: Rig;
let view: DeploymentView;
let stats: VersionStats;
let steward: Steward;
beforeEach(async () => {
  rig = await setup();
  const { redis, keys, metrics } = rig;
  const onError = (error: Error): never => {
    throw error;
  };
  view = new DeploymentView({ redis, subscriber: redis, keys, onError });
  stats = new VersionStats({ redis, keys, deployments: view, clock: systemClock, onError });
  steward = new Steward({ redis, keys, view, metrics, logger: silentLogger, onError });
});
afterEach(async () => {
  await steward.stop();
  await rig.close();
});

async function setSplit(split: TrafficSplit | null, over: Partial<ModelDeployment> = {}): Promise<void> {
  await view.store.edit({
    model: 'model',
    who: 'test',
    what: 'split_set',
    detail: {},
    change: (current) => ({ ...current, split, ...over }),
  });
  await view.refresh();
}

/** Items of a version that end in one batch, each with the code of its error or undefined. */
function end(
  version: string,
  codes: (string | undefined)[],
  seconds = 0.01,
  idOf = (id: string) => id,
): void {
  const units = codes.map((_, i) => ({ requestId: idOf(`req_${i}`) }));
  stats.ran('model', version, units, [{ seconds }]);
  const ends = codes.map((code) => ({
    kind: 'written' as const,
    ok: code === undefined,
    code,
    ended: 'succeeded' as const,
  }));
  stats.ended('model', version, units, ends);
}

const ok = (count: number) => new Array<undefined>(count).fill(undefined);
const split = () => readSplitStats({ ...rig, deployment: view.of('model'), serving: view.serving('model') });

it('counts items by how they ended and runs by their time, for each side', async () => {
  await setSplit(SPLIT);
  end('1', [...ok(3), 'inference_failed', 'item_rejected', 'deadline_exceeded'], 0.02);
  end('2', ok(2), 0.08);
  await stats.flush();
  end('2', [...ok(1), 'runner_crashed'], 0.08);
  await stats.flush();
  const report = await split();
  expect(report?.sides).toMatchObject([
    { ref: '1', version: '1', weight: 90, requests: 4, errors: 1, input_errors: 1, error_rate: 0.25 },
    { ref: '2', version: '2', weight: 10, requests: 4, errors: 1, input_errors: 0 },
  ]);
  const [stable, canary] = report?.sides.map(({ run_p95_s }) => run_p95_s as number) ?? [];
  expect(Math.abs((stable as number) / 0.02 - 1)).toBeLessThan(0.046);
  expect(Math.abs((canary as number) / 0.08 - 1)).toBeLessThan(0.046);
  expect(report?.judgements).toMatchObject({ '2': { verdict: 'too_few' } });
});

it('counts nothing while traffic is not split, and no copies for a shadow', async () => {
  end('1', ok(5));
  await setSplit(SPLIT);
  end('2', ok(5), 0.01, shadowIdOf);
  await stats.flush();
  expect((await split())?.sides.map(({ requests }) => requests)).toEqual([0, 0]);
});

it('begins anew with every change of the desired state', async () => {
  await setSplit(SPLIT);
  end('1', ok(5));
  await stats.flush();
  await setSplit({ ...SPLIT, weights: { '1': 50, '2': 50 } });
  end('1', ok(2));
  await stats.flush();
  expect((await split())?.sides.map(({ requests }) => requests)).toEqual([2, 0]);
});

it('a canary that fails more is taken back; default stays with the stable version', async () => {
  await setSplit(SPLIT);
  for (let i = 0; i < 40; i++) end('1', ok(10));
  for (let i = 0; i < 12; i++) end('2', [...ok(8), 'inference_failed', 'inference_failed']);
  await stats.flush();
  await steward.turn();
  expect(view.of('model').split).toEqual({ ...SPLIT, weights: { '1': 100 } });
  const [event] = await view.store.history('model', 1);
  expect(event).toMatchObject({
    who: 'fleet',
    what: 'rolled_back',
    detail: {
      canary: '2',
      by: 'errors',
      requests: { stable: 400, canary: 120 },
      error_rate: { canary: 0.2 },
    },
  });
  await steward.turn();
  expect((await view.store.history('model', 10)).map(({ what }) => what)).toEqual([
    'rolled_back',
    'split_set',
  ]);
  expect(await rig.metrics.text()).toContain('remuda_canary_rollbacks_total{model="model",by="errors"} 1');
});

it('a slow canary is taken back, and the others of the split keep their share', async () => {
  await setSplit({ ...SPLIT, weights: { '1': 80, '2': 10, '3': 10 } });
  for (let i = 0; i < 200; i++) {
    end('1', ok(1), 0.01);
    end('2', ok(1), 0.03);
    end('3', ok(1), 0.01);
  }
  await stats.flush();
  await steward.turn();
  expect(view.of('model').split?.weights).toEqual({ '1': 90, '3': 10 });
});

it('a bad canary stays where no rule says otherwise', async () => {
  await setSplit({ ...SPLIT, rollback: null });
  for (let i = 0; i < 20; i++) {
    end('1', ok(10));
    end('2', new Array(10).fill('inference_failed'));
  }
  await stats.flush();
  await steward.turn();
  expect(view.of('model').split?.weights).toEqual(SPLIT.weights);
});

it('a canary whose breaker is open everywhere is taken back without a minimum of requests', async () => {
  const loaded = (version: string, breaker: LoadedModel['breaker']) => ({
    model: 'model',
    version,
    device: 'cpu',
    state: 'ready',
    reason: null,
    load_mode: 'eager',
    breaker,
  });
  const models = [loaded('1', 'closed'), loaded('2', 'open')];
  const snapshot = () => ({ worker_id: 'a', state: 'ready', models }) as unknown as WorkerHeartbeat;
  const { redis, keys } = rig;
  await new HeartbeatWriter({ redis, keys, workerId: 'a', snapshot, onError: () => {} }).beat();
  await setSplit(SPLIT);
  await steward.turn();
  expect(view.of('model').split?.weights).toEqual({ '1': 100 });
});
