/**
 * What does not fit together in Redis, over a real one: each test makes the damage and sees it mended, and the healthy
 * neighbour left as it was. Clocks stand still unless a test moves them.
 */
import { Reconciler } from '@remuda/core/mend/reconciler';
import { jobKey } from '@remuda/core/queue/queue-keys';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  answer,
  outcome,
  PARTITION,
  type Rig,
  setup,
  stored,
  submission,
  tensor,
  unitOf,
} from '../requests/rig.js';

let rig: Rig;
let now: number;
let mended: string[];
let reconciler: Reconciler;
beforeEach(async () => {
  rig = await setup();
  now = 1_000_000;
  mended = [];
  const { redis, keys, queues } = rig;
  const clock = { now: () => now, after: () => () => {} };
  reconciler = new Reconciler({ redis, keys, queues, clock, onMended: (kind) => mended.push(kind) });
});
afterEach(() => rig.close());

/** So many rounds that all keys of this Redis were seen, also those of tests beside this one. */
async function walkAll(): Promise<void> {
  const turns = Math.ceil((await rig.redis.dbsize()) / 500) + 2;
  for (let turn = 0; turn < turns; turn++) await reconciler.turn();
}

/** Sees the damage; half a minute later, sees it again and mends it. */
async function reconcile(): Promise<void> {
  await walkAll();
  expect(mended, 'at first sight nothing is touched').toEqual([]);
  now += 31_000;
  await walkAll();
}

/** Too large to lie in the record: its input has a key of its own. */
const WIDE = 4_000;
const submit = async (over = {}): Promise<StoredRecord> => {
  const { record } = await rig.cases.submit(submission({ width: WIDE, ...over }));
  return (await stored(rig.store, record.request_id)) as StoredRecord;
};
const payloadOf = ({ requestId, nonce }: StoredRecord): string => rig.keys.payload(requestId, nonce, 0);
const hasJob = ({ requestId }: StoredRecord): Promise<boolean> => rig.queues.of(PARTITION).has(requestId);
const exists = async (key: string): Promise<boolean> => (await rig.redis.exists(key)) === 1;

/** The record, its input and its place in the lists are gone, as after a Redis that lost its newest writes. */
async function loseRecord({ requestId }: StoredRecord): Promise<void> {
  await rig.redis.unlink(rig.keys.record(requestId));
  for (const list of [rig.keys.open(0), rig.keys.all(0)]) await rig.redis.zrem(list, requestId);
}

/** Ends it with an outcome that is too large for its record. */
async function endLarge(record: StoredRecord): Promise<string> {
  await rig.store.claimAndFetch([unitOf(record)], 'worker');
  await rig.store.writeOutcomes([outcome(unitOf(record), 'ok', [tensor('y', 1, 1, 10_000)])]);
  return rig.keys.largeResult(record.requestId, record.nonce, 0, 1);
}

it('leaves alone what is well: waiting, running, ended, and inputs on their way', async () => {
  const waiting = await submit();
  const running = await submit();
  await rig.store.claimAndFetch([unitOf(running)], 'worker');
  const ended = await submit();
  const large = await endLarge(ended);
  await rig.queues.of(PARTITION).remove(ended.requestId);
  const onItsWay = rig.keys.payload('coming', 'n', 0);
  await rig.redis.set(onItsWay, 'x', 'EX', 600);
  const before = await rig.redis.pttl(large);
  await reconcile();
  expect(mended).toEqual([]);
  for (const record of [waiting, running]) {
    expect(await exists(payloadOf(record))).toBe(true);
    expect(await hasJob(record)).toBe(true);
  }
  for (const key of [large, onItsWay, rig.keys.record(ended.requestId)]) expect(await exists(key)).toBe(true);
  expect(await rig.redis.pttl(large)).toBeLessThanOrEqual(before);
});

it('takes away a job whose record is gone', async () => {
  const [lost, well] = [await submit({ width: 4 }), await submit({ width: 4 })];
  await loseRecord(lost);
  await reconcile();
  expect(mended).toEqual(['job_removed']);
  expect(await hasJob(lost)).toBe(false);
  expect(await hasJob(well)).toBe(true);
});

it('takes away a job whose request has ended', async () => {
  const record = await submit({ width: 4 });
  await answer(rig.store, record.requestId, ['ok']);
  await reconcile();
  expect(mended).toEqual(['job_removed']);
  expect(await hasJob(record)).toBe(false);
});

it('leaves a job without a record to the worker that holds it', async () => {
  const record = await submit({ width: 4 });
  await rig.redis.set(`${jobKey(rig.keys.space.prefix, PARTITION, record.requestId)}:lock`, 'worker');
  await loseRecord(record);
  await reconcile();
  expect(mended).toEqual([]);
  expect(await hasJob(record)).toBe(true);
});

it('leaves a job whose record comes after the first look', async () => {
  const record = await submit({ width: 4 });
  const key = rig.keys.record(record.requestId);
  await rig.redis.rename(key, `${rig.keys.space.prefix}:aside`);
  await walkAll();
  await rig.redis.rename(`${rig.keys.space.prefix}:aside`, key);
  now += 31_000;
  await walkAll();
  expect(mended).toEqual([]);
  expect(await hasJob(record)).toBe(true);
});

it('takes away inputs whose request has no record, has ended, or has other inputs', async () => {
  const [lost, ended, changed, well] = [await submit(), await submit(), await submit(), await submit()];
  await loseRecord(lost);
  await rig.redis.hset(rig.keys.record(ended.requestId), 's', 'cancelled');
  await rig.redis.pexpire(rig.keys.record(ended.requestId), 60_000);
  await rig.redis.hset(rig.keys.record(changed.requestId), 'nonce', 'other');
  for (const { requestId } of [lost, ended]) await rig.queues.of(PARTITION).remove(requestId);
  await reconcile();
  expect(mended).toEqual(['payload_removed', 'payload_removed', 'payload_removed']);
  for (const record of [lost, ended, changed]) expect(await exists(payloadOf(record))).toBe(false);
  expect(await exists(payloadOf(well))).toBe(true);
});

it('takes away a large outcome whose record is gone', async () => {
  const record = await submit();
  const large = await endLarge(record);
  await rig.queues.of(PARTITION).remove(record.requestId);
  await loseRecord(record);
  await reconcile();
  expect(mended).toEqual(['outcome_removed']);
  expect(await exists(large)).toBe(false);
});

it('lets the outcome of a fenced attempt go with the record, not a week later', async () => {
  const record = await submit();
  await endLarge(record);
  await rig.queues.of(PARTITION).remove(record.requestId);
  const fenced = rig.keys.largeResult(record.requestId, record.nonce, 0, 7);
  await rig.redis.set(fenced, 'x', 'EX', 7 * 24 * 3600);
  await reconcile();
  expect(mended).toEqual(['outcome_removed']);
  expect(await rig.redis.pttl(fenced)).toBeLessThanOrEqual(3_600_000);
});

it('gives the record of an ended request back its end', async () => {
  const record = await submit({ width: 4 });
  const key = rig.keys.record(record.requestId);
  await answer(rig.store, record.requestId, ['ok']);
  await rig.queues.of(PARTITION).remove(record.requestId);
  await rig.redis.persist(key);
  await reconcile();
  expect(mended).toEqual(['retention_set']);
  const left = await rig.redis.pttl(key);
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThanOrEqual(3_600_000);
});

it('lists a request again that no list has, so that its job and its deadline are looked after', async () => {
  const record = await submit({ width: 4 });
  await rig.redis.zrem(rig.keys.open(0), record.requestId);
  await reconcile();
  expect(mended).toEqual(['relisted']);
  expect(await rig.redis.zscore(rig.keys.open(0), record.requestId)).toBe(String(record.acceptedAt));
});

it('a turn looks at a bounded part of the keys, and the next goes on from there', async () => {
  const ghosts = Array.from({ length: 5_000 }, (_, i) => [rig.keys.payload(`ghost${i}`, 'n', 0), 'x']).flat();
  await rig.redis.mset(...ghosts);
  await reconciler.turn();
  now += 31_000;
  await reconciler.turn();
  expect(mended.length).toBeLessThanOrEqual(500);
  for (let turn = 0; turn < 100 && mended.length < 5_000; turn++) {
    now += 31_000;
    await reconciler.turn();
  }
  expect(mended).toHaveLength(5_000);
});
