/** The sweeper: deadlines that nobody looks at, jobs that are lost, ids that point nowhere. */
import { lifeLog } from '@remuda/core/observability/events';
import { silentLogger } from '@remuda/core/observability/logger';
import { MAX_RESCUES } from '@remuda/core/queue/retry-policy';
import { Sweeper } from '@remuda/core/requests/sweep-requests';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  answer,
  outcome,
  PARTITION,
  passDeadline,
  type Rig,
  setup,
  stored,
  submission,
  unitOf,
} from './rig.js';

let rig: Rig;
let now: number;
let sweeper: Sweeper;
beforeEach(async () => {
  rig = await setup();
  now = Date.now();
  sweeper = newSweeper();
});
afterEach(async () => {
  await sweeper.stop();
  await rig.close();
});

function newSweeper(): Sweeper {
  const clock = { now: () => now, after: () => () => {} };
  const { redis, store, queues, metrics } = rig;
  const life = lifeLog(silentLogger);
  return new Sweeper({ redis, store, queues, metrics, life, clock, onError: () => {} });
}

const later = (ms: number): void => {
  now = Date.now() + ms;
};
const queue = () => rig.queues.of(PARTITION);
const repairs = async (kind: string): Promise<number> => {
  const line = new RegExp(`remuda_repairs_total\\{kind="${kind}"\\} (\\d+)`);
  return Number(line.exec(await rig.metrics.text())?.[1] ?? 0);
};

it('ends a queued request whose deadline has passed, and takes its job away', async () => {
  const { record } = await rig.cases.submit(submission({ metadata: { priority: 5, timeout_ms: 5_000 } }));
  await sweeper.turn();
  expect((await rig.cases.get(record.request_id)).status).toBe('queued');
  await passDeadline(rig, record.request_id, 'start');
  await sweeper.turn();
  expect(await rig.cases.get(record.request_id)).toMatchObject({
    status: 'expired',
    error: { code: 'deadline_exceeded' },
  });
  expect(await queue().has(record.request_id)).toBe(false);
  expect(await repairs('expired')).toBe(1);
});

it('leaves a request with a passed deadline to the worker that runs it', async () => {
  const { record } = await rig.cases.submit(submission({ metadata: { priority: 5, timeout_ms: 5_000 } }));
  const found = (await stored(rig.store, record.request_id)) as StoredRecord;
  await rig.store.claimAndFetch([unitOf(found)], 'worker');
  await passDeadline(rig, record.request_id, 'start');
  await sweeper.turn();
  expect((await rig.cases.get(record.request_id)).status).toBe('running');
});

it('puts a lost job back, with a token above that of the lost attempt', async () => {
  const { record } = await rig.cases.submit(submission());
  const found = (await stored(rig.store, record.request_id)) as StoredRecord;
  await rig.store.claimAndFetch([unitOf(found, 0, 4)], 'worker');
  await queue().remove(record.request_id);
  await sweeper.turn();
  expect(await queue().has(record.request_id), 'too young to be lost').toBe(false);
  later(31_000);
  await sweeper.turn();
  const key = `${rig.keys.space.prefix}:queue:{model/cpu/interactive}:${record.request_id}`;
  const ticket = JSON.parse((await rig.redis.hget(key, 'data')) as string);
  expect(ticket).toMatchObject({ requestId: record.request_id, tokenBase: 4, nonce: found.nonce });
  expect(await repairs('job_added')).toBe(1);
});

it('does not touch a request whose job is there', async () => {
  const { record } = await rig.cases.submit(submission());
  later(31_000);
  await sweeper.turn();
  expect(await repairs('job_added')).toBe(0);
  expect(await rig.redis.hexists(rig.keys.record(record.request_id), 'rescued')).toBe(0);
});

const lose = async (requestId: string): Promise<void> => {
  await queue().remove(requestId);
  await sweeper.turn();
};
/** The losses that are counted so far happened some minutes ago. */
const longAgo = (requestId: string) => rig.redis.hincrby(rig.keys.record(requestId), 'resc:at', -10 * 60_000);

it('gives a request up whose job is lost again and again, and not for losses of one moment', async () => {
  const { record } = await rig.cases.submit(submission());
  const id = record.request_id;
  later(31_000);
  for (let loss = 1; loss <= 2 * MAX_RESCUES; loss++) await lose(id);
  expect((await rig.cases.get(id)).status).toBe('queued');
  for (let loss = 2; loss <= MAX_RESCUES; loss++) {
    await longAgo(id);
    await lose(id);
    expect((await rig.cases.get(id)).status).toBe('queued');
  }
  await longAgo(id);
  await lose(id);
  expect(await rig.cases.get(id)).toMatchObject({ status: 'failed', error: { code: 'worker_lost' } });
  expect(await queue().has(id)).toBe(false);
  expect(await repairs('worker_lost')).toBe(1);
});

it('does not give up what makes progress between its losses', async () => {
  const { record } = await rig.cases.submit(submission({ values: [1, 2] }));
  const id = record.request_id;
  later(31_000);
  await lose(id);
  await rig.redis.hset(rig.keys.record(id), 'rescued', MAX_RESCUES);
  const found = (await stored(rig.store, id)) as StoredRecord;
  await rig.store.claimAndFetch([unitOf(found)], 'worker');
  await rig.store.writeOutcomes([outcome(unitOf(found), 'ok')]);
  await longAgo(id);
  await lose(id);
  expect((await rig.cases.get(id)).status).toBe('running');
  expect(await rig.redis.hget(rig.keys.record(id), 'rescued')).toBe('1');
});

it('puts a lost job back whose API has a clock that is ahead by an hour', async () => {
  const { record } = await rig.cases.submit(submission());
  later(-3_600_000);
  await lose(record.request_id);
  expect(await queue().has(record.request_id)).toBe(true);
});

it('puts back a job that is in no list of its queue', async () => {
  const { record } = await rig.cases.submit(submission());
  const lists = `${rig.keys.space.prefix}:queue:{model/cpu/interactive}`;
  await rig.redis.zrem(`${lists}:prioritized`, record.request_id);
  later(31_000);
  await sweeper.turn();
  expect((await queue().waiting(10)).map(({ requestId }) => requestId)).toEqual([record.request_id]);
  expect(await repairs('job_added')).toBe(1);
});

it('frees what dead workers hold on a queue that no worker looks at, and not before their locks run out', async () => {
  const prefix = `${rig.keys.space.prefix}:queue:{model/cpu/interactive}`;
  const ids: string[] = [];
  for (let i = 0; i < 2; i++) ids.push((await rig.cases.submit(submission())).record.request_id);
  const [dead, held] = ids as [string, string];
  // As a worker leaves them that was killed with both in its hands.
  await rig.redis.zrem(`${prefix}:prioritized`, ...ids);
  await rig.redis.lpush(`${prefix}:active`, ...ids);
  await rig.redis.set(`${prefix}:${held}:lock`, 'token');
  later(31_000);
  await sweeper.turn();
  // Others look no more often than once a second; they are not made to wait here.
  await rig.redis.del(`${prefix}:stalled-check`);
  await sweeper.turn();
  expect(await queue().depth()).toEqual({ waiting: 1, active: 1 });
  expect((await queue().waiting(10)).map(({ requestId }) => requestId)).toEqual([dead]);
  expect(await repairs('job_freed')).toBe(1);
});

it('forgets ids that have ended or have no record', async () => {
  const { record } = await rig.cases.submit(submission());
  await answer(rig.store, record.request_id, ['ok']);
  await rig.redis.zadd(rig.keys.open(0), now, record.request_id, now, 'ghost');
  await rig.redis.zadd(rig.keys.all(0), now, 'ghost');
  await sweeper.turn();
  expect(await rig.store.countOpen()).toBe(0);
  expect((await rig.store.list(null, 10)).map(({ id }) => id)).toEqual([record.request_id]);
  expect(await rig.redis.exists(rig.keys.record('ghost'))).toBe(0);
});

it('walks past a thousand requests of one millisecond', async () => {
  const ghosts = Array.from({ length: 1_200 }, (_, i) => [5, `ghost${i}`]).flat();
  await rig.redis.zadd(rig.keys.open(0), ...(ghosts as (string | number)[]));
  const { record } = await rig.cases.submit(submission());
  await queue().remove(record.request_id);
  later(31_000);
  await sweeper.turn();
  expect(await rig.store.countOpen()).toBe(1);
  expect(await queue().has(record.request_id)).toBe(true);
});

it('runs in one process of the fleet at a time, and in another once that one has stopped', async () => {
  const other = newSweeper();
  await other.turn();
  const { record } = await rig.cases.submit(submission());
  await queue().remove(record.request_id);
  later(31_000);
  await sweeper.turn();
  expect(await queue().has(record.request_id)).toBe(false);
  await other.stop();
  await sweeper.turn();
  expect(await queue().has(record.request_id)).toBe(true);
});

it('ends a request that waits for a model that was taken out, and takes its job away', async () => {
  const { record } = await rig.cases.submit(submission());
  later(1_000);
  const out = new Set<string>();
  const { redis, store, queues, metrics } = rig;
  const clock = { now: () => now, after: () => () => {} };
  const life = lifeLog(silentLogger);
  const isTakenOut = (model: string): boolean => out.has(model);
  const knowing = new Sweeper({ redis, store, queues, metrics, life, clock, isTakenOut, onError: () => {} });
  await knowing.turn();
  expect((await rig.cases.get(record.request_id)).status).toBe('queued');
  out.add('model');
  await knowing.turn();
  await knowing.stop();
  expect(await rig.cases.get(record.request_id)).toMatchObject({
    status: 'failed',
    error: { code: 'model_not_found', message: expect.stringMatching(/^model was taken out; POST /) },
  });
  expect(await queue().has(record.request_id)).toBe(false);
  expect(await repairs('taken_out')).toBe(1);
});
