/** Models with a result cache: what has an answer is not run again, and what is identical runs once. */
import { itemError } from '@remuda/core/errors';
import { lifeLog } from '@remuda/core/observability/events';
import { silentLogger } from '@remuda/core/observability/logger';
import { Coalescing } from '@remuda/core/requests/coalescing';
import { Sweeper } from '@remuda/core/requests/sweep-requests';
import { CacheStore } from '@remuda/core/store/cache-store';
import type { ModelSignature, RequestRecord, ResultCacheRule } from '@remuda/schemas';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  answer,
  outcome,
  PARTITION,
  type Rig,
  type SubmissionOptions,
  setup,
  signature,
  stored,
  submission,
  tensor,
  unitOf,
  until,
} from './rig.js';

const RULE: ResultCacheRule = { ttl_s: 600, max_bytes: 1_000_000, shared: false };
let rig: Rig;
const start = async (rule: Partial<ResultCacheRule> = {}, shards = 1) => {
  rig = await setup({ shards, config: { result_cache: { ...RULE, ...rule } } });
};
beforeEach(() => start());
afterEach(() => rig.close());

const send = async (options: SubmissionOptions = {}): Promise<RequestRecord> =>
  (await rig.cases.submit(submission(options))).record;
const jobs = async () => (await rig.queues.of(PARTITION).depth()).waiting;
const status = async (id: string) => (await rig.cases.get(id)).status;
const ended = (id: string) => until(`${id} has ended`, async () => (await status(id)) !== 'queued');
const counted = async (outcome: string) => {
  const line = new RegExp(
    `^remuda_result_cache_requests_total\\{model="model",outcome="${outcome}"\\} (\\d+)`,
    'm',
  );
  return Number(line.exec(await rig.metrics.text())?.[1] ?? 0);
};
/** Plays the worker for a request, and waits until its answer is in the cache. */
async function run(id: string): Promise<void> {
  await answer(rig.store, id, ['ok']);
  await rig.queues.of(PARTITION).remove(id);
  await until(
    'its end is dealt with',
    async () => (await rig.redis.zcard(rig.keys.after(rig.keys.shardOf(id)))) === 0,
  );
}
const outputs = async (id: string) => (await rig.cases.result(id))?.items.map((item) => item.outputs);

describe('an answer that is there', () => {
  it('is given at once, in a record of its own, and nothing is run', async () => {
    const first = await send();
    expect(await jobs()).toBe(1);
    await run(first.request_id);
    const { record } = await rig.cases.submit(submission());
    expect(record).toMatchObject({
      status: 'succeeded',
      cached_from: first.request_id,
      attempts: 0,
      started_at: null,
    });
    expect(record.notices).toContain('answered with the answer of an identical request');
    expect(record.request_id).not.toBe(first.request_id);
    expect(await outputs(record.request_id)).toEqual(await outputs(first.request_id));
    expect(await jobs()).toBe(0);
    expect([await counted('hit'), await counted('miss')]).toEqual([1, 1]);
    expect(await rig.metrics.text()).toMatch(/remuda_requests_total\{.*outcome="succeeded"\} 1/);
  });

  it('leaves no input behind, however large', async () => {
    await run((await send({ width: 10_000 })).request_id);
    await send({ width: 10_000 });
    expect(await rig.redis.keys(`${rig.keys.tagOf('any')}:p:*`)).toEqual([]);
  });

  it('is as good where it is large', async () => {
    const { request_id: id } = await send();
    const record = await stored(rig.store, id);
    const unit = unitOf(record as never);
    await rig.store.claimAndFetch([unit], 'worker');
    await rig.store.writeOutcomes([outcome(unit, 'ok', [tensor('y', 1, 1, 20_000)])]);
    await until('kept', async () => (await send()).status === 'succeeded');
    const copy = await send();
    expect(await outputs(copy.request_id)).toEqual(await outputs(id));
    const [key] = await rig.redis.keys(`${rig.keys.tagOf(copy.request_id)}:o:${copy.request_id}:*`);
    expect(await rig.redis.ttl(key as string)).toBeLessThanOrEqual(3_600);
  });

  it('wakes who waits, and is there for requests of many items and for many at once', async () => {
    const first = await send({ values: [1, 2, 3] });
    await answer(rig.store, first.request_id, ['ok', 'ok', 'ok']);
    await until('kept', async () => (await rig.redis.zcard(rig.keys.after(0))) === 0);
    const outcomes = await rig.cases.submitMany([
      submission({ values: [1, 2, 3] }),
      submission({ values: [1, 2] }),
    ]);
    const records = outcomes.map((one) => (one as { record: RequestRecord }).record);
    expect(records.map((record) => record.status)).toEqual(['succeeded', 'queued']);
    expect(records[0]?.items).toEqual({ total: 3, succeeded: 3, failed: 0 });
    expect((await rig.cases.waitFor(records[0]?.request_id as string, 60_000)).status).toBe('succeeded');
    expect(await outputs(records[0]?.request_id as string)).toEqual(await outputs(first.request_id));
  });

  it('is given to the same id of a user once', async () => {
    await run((await send()).request_id);
    const first = await rig.cases.submit(submission({ id: 'mine' }));
    const again = await rig.cases.submit(submission({ id: 'mine' }));
    expect([first.known, again.known]).toEqual([false, true]);
    expect(again.record).toMatchObject({ status: 'succeeded', created_at: first.record.created_at });
    await expect(rig.cases.submit(submission({ id: 'mine', values: [2] }))).rejects.toMatchObject({
      code: 'request_id_conflict',
    });
    // What was refused leads nobody.
    expect(await rig.redis.keys(`${rig.keys.resultCache('model')}:lead:*`)).toEqual([]);
  });

  it('is not that of a request that failed', async () => {
    const { request_id: id } = await send();
    await answer(rig.store, id, ['error']);
    await until('dealt with', async () => (await rig.redis.zcard(rig.keys.after(0))) === 0);
    expect((await send()).status).toBe('queued');
  });

  it('is passed by where the request says so, which counts for others neither', async () => {
    await run((await send()).request_id);
    expect((await send({ cache: 'bypass' })).status).toBe('queued');
    expect(await counted('bypass')).toBe(1);
  });

  it('is over after its time', async () => {
    await rig.close();
    await start({ ttl_s: 0.05 });
    const { request_id: id } = await send();
    await answer(rig.store, id, ['ok']);
    await until('dealt with', async () => (await rig.redis.zcard(rig.keys.after(0))) === 0);
    await until(
      'over',
      async () => (await rig.redis.keys(`${rig.keys.resultCache('model')}:entry:*`)).length === 0,
    );
    expect((await send()).status).toBe('queued');
  });
});

describe('a request is another one', () => {
  const bytes = new Uint8Array(16);
  const variants: [why: string, change: (s: ReturnType<typeof submission>) => void][] = [
    [
      'with other values',
      (s) => Object.assign(s.items[0]?.tensors[0] as object, { bytes: new Uint8Array(16).fill(1) }),
    ],
    [
      'with equal bytes in another shape',
      (s) => Object.assign(s.items[0]?.tensors[0] as object, { shape: [2, 2] }),
    ],
    [
      'with equal bytes of another datatype',
      (s) => Object.assign(s.items[0]?.tensors[0] as object, { datatype: 'INT32' }),
    ],
    ['with other parameters', (s) => Object.assign(s.options, { parameters: { k: 2 } })],
    ['of another tenant', (s) => Object.assign(s, { tenant: 'other' })],
    ['for a device that it asks for', (s) => Object.assign(s.options, { device: 'cpu' })],
  ];
  const made = () => {
    const s = submission();
    Object.assign(s.items[0]?.tensors[0] as object, { bytes, shape: [1, 4] });
    return s;
  };

  it.each(variants)('%s', async (_, change) => {
    await run((await rig.cases.submit(made())).record.request_id);
    expect((await rig.cases.submit(made())).record.status).toBe('succeeded');
    const other = made();
    change(other);
    expect((await rig.cases.submit(other)).record.status).toBe('queued');
  });

  it('for another version', async () => {
    await run((await rig.cases.submit(made())).record.request_id);
    const target = await rig.cases.resolve({ model: 'model' });
    const next: ModelSignature = signature({ digest: 'digest-2' });
    const other = { ...made(), target: { ...target, signature: next } };
    expect((await rig.cases.submit(other)).record.status).toBe('queued');
  });

  it('unless the model shares answers between tenants: then it is not told whose it is', async () => {
    await rig.close();
    await start({ shared: true });
    await run((await send()).request_id);
    const record = await send({ tenant: 'other' });
    expect(record.status).toBe('succeeded');
    expect(record.cached_from).toBeUndefined();
  });
});

describe.each([1, 4])('identical requests that are under way, with %i shards', (shards) => {
  beforeEach(async () => {
    await rig.close();
    await start({}, shards);
  });

  it('run once and are all answered', async () => {
    const records: RequestRecord[] = [];
    for (let i = 0; i < 13; i++) {
      records.push(...(await Promise.all(Array.from({ length: 10 }, () => send()))));
    }
    expect(await jobs()).toBe(1);
    expect([await counted('miss'), await counted('coalesced')]).toEqual([1, 129]);
    const leader = records.find(
      ({ notices }) => !notices.some((notice) => notice.includes('identical')),
    ) as RequestRecord;
    await answer(rig.store, leader.request_id, ['ok']);
    const all: RequestRecord[] = [];
    for (const { request_id } of records) {
      await ended(request_id);
      all.push(await rig.cases.get(request_id));
    }
    expect(new Set(all.map((record) => record.status))).toEqual(new Set(['succeeded']));
    expect(new Set(all.map((record) => record.cached_from))).toEqual(new Set([undefined, leader.request_id]));
    expect(await rig.store.countOpen()).toBe(0);
    expect(await rig.redis.keys(`${rig.keys.resultCache('model')}:followers:*`)).toEqual([]);
  });

  it('go on when the first is cancelled: one of the others runs, and all are answered', async () => {
    const [leader, ...others] = [await send(), await send(), await send(), await send()] as [
      RequestRecord,
      ...RequestRecord[],
    ];
    await rig.cases.cancel(leader.request_id);
    await until('another has a job', async () => (await jobs()) === 1);
    const has = await Promise.all(others.map(({ request_id }) => rig.queues.of(PARTITION).has(request_id)));
    const next = others[has.indexOf(true)] as RequestRecord;
    await answer(rig.store, next.request_id, ['ok']);
    await Promise.all(others.map(({ request_id }) => ended(request_id)));
    const all = await Promise.all(others.map(({ request_id }) => rig.cases.get(request_id)));
    expect(all.map((record) => record.status)).toEqual(['succeeded', 'succeeded', 'succeeded']);
    expect(all.filter((record) => record.cached_from === next.request_id)).toHaveLength(2);
    expect(await status(leader.request_id)).toBe('cancelled');
  });

  it('each run by themselves when the first failed', async () => {
    const [leader] = [await send(), await send(), await send()];
    await answer(rig.store, leader?.request_id as string, ['error']);
    await rig.queues.of(PARTITION).remove(leader?.request_id as string);
    await until('both have jobs', async () => (await jobs()) === 2);
  });

  it('have deadlines and ends of their own', async () => {
    const leader = await send();
    const [stopped, late] = [await send(), await send({ metadata: { priority: 5, timeout_ms: 1 } })];
    expect(await rig.cases.cancel(stopped.request_id)).toMatchObject({ outcome: 'removed_from_queue' });
    const sweeps = sweeper();
    await until('expired', async () => {
      await sweeps.turn();
      return (await status(late.request_id)) === 'expired';
    });
    expect(await status(leader.request_id)).toBe('queued');
    await run(leader.request_id);
    expect([await status(stopped.request_id), await status(late.request_id)]).toEqual([
      'cancelled',
      'expired',
    ]);
  });

  it('of which one goes first than the other do not wait for that', async () => {
    await send();
    await send({ metadata: { priority: 1 } });
    expect(await jobs()).toBe(2);
    await send({ metadata: { priority: 3 } });
    expect(await jobs()).toBe(2);
  });

  it('are answered by the sweeper when whoever was to tell them died', async () => {
    const leader = await send();
    const follower = await send();
    // Nobody hears of its end.
    await rig.redis.hdel(rig.keys.record(leader.request_id), 'aft');
    await answer(rig.store, leader.request_id, ['ok']);
    expect(await status(follower.request_id)).toBe('queued');
    await sweeper().turn();
    expect(await rig.cases.get(follower.request_id)).toMatchObject({
      status: 'succeeded',
      cached_from: leader.request_id,
    });
  });

  it('that follow each other, since an id came anew while its follower took the lead, are run all the same', async () => {
    const first = await send();
    const second = await send();
    // Whoever was to let the second run died behind its taking the lead, and the first was taken back and sent again.
    await rig.redis.hset(rig.keys.record(first.request_id), 'fol', second.request_id);
    await rig.queues.of(PARTITION).remove(first.request_id);
    await sweeper({ now: 60_000 }).turn();
    expect(await jobs()).toBeGreaterThan(0);
  });

  it('whose leader never came to be are run, but not before it had time', async () => {
    const leader = await send();
    const follower = await send();
    await rig.store.withdraw(
      leader.request_id,
      (await stored(rig.store, leader.request_id))?.nonce as string,
    );
    await rig.queues.of(PARTITION).remove(leader.request_id);
    const ahead = { now: 0 };
    const sweeps = sweeper(ahead);
    await sweeps.turn();
    expect(await jobs()).toBe(0);
    ahead.now = 60_000;
    await sweeps.turn();
    expect(await rig.queues.of(PARTITION).has(follower.request_id)).toBe(true);
    expect((await send()).notices.join()).toContain('identical');
    await run(follower.request_id);
    expect((await send()).status).toBe('succeeded');
  });
});

/** One that has the lease. @param aheadMs by which its clock is ahead */
function sweeper(aheadMs = { now: 0 }): Sweeper {
  const clock = { now: () => Date.now() + aheadMs.now, after: () => () => {} };
  const { store, queues, redis, metrics } = rig;
  const life = lifeLog(silentLogger);
  const cache = new CacheStore(redis, rig.keys);
  const coalescing = new Coalescing({ store, cache, queues, metrics, life, clock, ring: () => {} });
  return new Sweeper({ redis, store, queues, metrics, life, clock, coalescing, onError: () => {} });
}

describe('the limit of bytes', () => {
  const total = async () => Number(await rig.redis.hget(`${rig.keys.resultCache('model')}:sizes`, 'total'));
  const kept = (value: number) => send({ values: [value] }).then((record) => record.status === 'succeeded');

  it('holds, and what was used longest ago goes first', async () => {
    await rig.close();
    await start({ max_bytes: 2_400 });
    for (const value of [1, 2, 3]) await run((await send({ values: [value] })).request_id);
    const each = (await total()) / 3;
    expect(each).toBeLessThan(800);
    expect(await kept(1)).toBe(true);
    for (let value = 4; value < 20; value++) {
      await run((await send({ values: [value] })).request_id);
      expect(await total()).toBeLessThanOrEqual(2_400);
      // Used again and again, it stays.
      expect(await kept(1)).toBe(true);
    }
    expect(await kept(2)).toBe(false);
    expect(await rig.metrics.text()).toMatch(/remuda_result_cache_evictions_total\{model="model"\} [1-9]/);
    expect(await rig.metrics.text()).toMatch(/remuda_result_cache_bytes\{model="model"\} [1-9]/);
  });

  it('keeps out what is larger', async () => {
    await rig.close();
    await start({ max_bytes: 100 });
    await run((await send()).request_id);
    expect(await total()).toBe(0);
    expect((await send()).status).toBe('queued');
  });

  it('of none at all leaves only sharing between requests under way', async () => {
    await rig.close();
    await start({ ttl_s: 0 });
    const leader = await send();
    const follower = await send();
    await run(leader.request_id);
    await ended(follower.request_id);
    expect((await send()).status).toBe('queued');
  });
});

it('a model without a cache is none of this', async () => {
  await rig.close();
  rig = await setup();
  const first = await send();
  const again = await send();
  expect(await jobs()).toBe(2);
  expect((await stored(rig.store, first.request_id))?.document.cache).toBeUndefined();
  await rig.store.end(again.request_id, 'cancelled', itemError('cancelled', 'no'));
  expect(await rig.redis.keys(`${rig.keys.resultCache('model')}*`)).toEqual([]);
});
