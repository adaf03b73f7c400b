/** What concerns all keys, on a real Cluster: every server is looked at, and no command takes keys of two. */
import { lifeLog } from '@remuda/core/observability/events';
import { silentLogger } from '@remuda/core/observability/logger';
import { Sweeper } from '@remuda/core/requests/sweep-requests';
import { memoryShare } from '@remuda/core/store/redis-memory';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ask, startCluster, type TestCluster } from '../../support/redis-servers.js';
import { answer, PARTITION, type Rig, setup, submission } from '../requests/rig.js';

let cluster: TestCluster;
let rig: Rig;
let now: number;
let sweeper: Sweeper;
beforeAll(async () => {
  cluster = await startCluster();
});
beforeEach(async () => {
  rig = await setup({ url: cluster.url, shards: 16 });
  now = Date.now();
  const { redis, store, queues, metrics } = rig;
  const clock = { now: () => now, after: () => () => {} };
  const life = lifeLog(silentLogger);
  const onError = (error: Error): never => {
    throw error;
  };
  sweeper = new Sweeper({ redis, store, queues, metrics, life, clock, onError });
});
afterEach(async () => {
  await sweeper.stop();
  await rig.close();
});
afterAll(() => cluster.stop());

const later = async (ms: number): Promise<void> => {
  now += ms;
  await sweeper.turn();
};

it('many requests in one call are stored, listed, read, answered and cancelled', async () => {
  const submissions = Array.from({ length: 40 }, (_, i) =>
    submission({ id: `many-${i}`, values: [i, i + 1] }),
  );
  const outcomes = await rig.cases.submitMany(submissions);
  const ids = outcomes.map((outcome) => ('record' in outcome ? outcome.record.request_id : String(outcome)));
  expect(ids).toEqual(submissions.map(({ options }) => options.request_id));
  expect((await rig.store.read(ids)).every((record) => record?.status === 'queued')).toBe(true);
  expect((await rig.store.list(null, 100)).map(({ id }) => id).sort()).toEqual([...ids].sort());
  await answer(rig.store, 'many-0', ['ok', 'ok']);
  expect((await rig.cases.get('many-0')).status).toBe('succeeded');
  expect((await rig.cases.cancel('many-1')).status).toBe('cancelled');
});

it('who waits for a result hears of it, on whichever server it was written', async () => {
  const ids = await Promise.all(
    Array.from({ length: 9 }, async () => (await rig.cases.submit(submission())).record.request_id),
  );
  const signal = new AbortController().signal;
  const waits = ids.map((id) => rig.cases.waitFor(id, 60_000, signal));
  for (const id of ids) await answer(rig.store, id, ['ok']);
  expect((await Promise.all(waits)).map(({ status }) => status)).toEqual(ids.map(() => 'succeeded'));
});

it('the sweeper puts lost jobs back and takes orphans away on all servers', async () => {
  const ids = await Promise.all(
    Array.from({ length: 30 }, async () => (await rig.cases.submit(submission())).record.request_id),
  );
  const lost = ids.slice(0, 10);
  for (const id of lost) await rig.queues.of(PARTITION).remove(id);
  const orphans = Array.from({ length: 30 }, (_, i) => rig.keys.payload(`orphan-${i}`, 'n', 0));
  await Promise.all(orphans.map((key) => rig.redis.set(key, 'x')));
  await sweeper.turn();
  await later(31_000);
  for (const id of lost) expect(await rig.queues.of(PARTITION).has(id)).toBe(true);
  await later(31_000);
  for (const key of orphans) expect(await rig.redis.exists(key)).toBe(0);
});

it('the fullest server decides whether there is room', async () => {
  const port = cluster.nodes[1]?.port as number;
  await ask(port, 'CONFIG', 'SET', 'maxmemory', '1');
  expect(await memoryShare(rig.redis)).toBeGreaterThan(1);
  await ask(port, 'CONFIG', 'SET', 'maxmemory', '0');
  expect(await memoryShare(rig.redis)).toBe(0);
});
