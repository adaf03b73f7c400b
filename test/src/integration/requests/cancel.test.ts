/** Cancelling says what it really did. */
import { JobConsumer } from '@remuda/core/queue/job-queue';
import { closeRedis, connectRedis } from '@remuda/core/store/redis';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { answer, PARTITION, type Rig, setup, stored, submission, unitOf } from './rig.js';

let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

it('a job that no worker has had is removed from the queue', async () => {
  const { record } = await rig.cases.submit(submission());
  const cancelled = await rig.cases.cancel(record.request_id);
  expect(cancelled).toMatchObject({ outcome: 'removed_from_queue', status: 'cancelled' });
  expect(await rig.queues.of(PARTITION).has(record.request_id)).toBe(false);
  expect(await rig.cases.get(record.request_id)).toMatchObject({
    status: 'cancelled',
    error: { code: 'cancelled' },
    expires_at: expect.any(String),
  });
});

it('a job that a worker holds but has not begun is stopped before the run', async () => {
  const held = await holdNextJob();
  const { record } = await rig.cases.submit(submission());
  await held.taken;
  const cancelled = await rig.cases.cancel(record.request_id);
  expect(cancelled.outcome).toBe('stopped_before_run');
  const found = (await stored(rig.store, record.request_id)) as StoredRecord;
  const [claim] = await rig.store.claimAndFetch([unitOf(found)], 'worker');
  expect(claim?.verdict).toBe('already_terminal');
  await held.release();
});

it('the answer of a run that had begun is suppressed', async () => {
  const { record } = await rig.cases.submit(submission());
  const found = (await stored(rig.store, record.request_id)) as StoredRecord;
  await rig.store.claimAndFetch([unitOf(found)], 'worker');
  expect((await rig.cases.cancel(record.request_id)).outcome).toBe('ran_but_suppressed');
});

it('what has ended stays as it is', async () => {
  const { record } = await rig.cases.submit(submission());
  await answer(rig.store, record.request_id, ['ok']);
  await expect(rig.cases.cancel(record.request_id)).rejects.toMatchObject({
    code: 'request_terminal',
    details: { status: 'succeeded' },
  });
  expect((await rig.cases.get(record.request_id)).status).toBe('succeeded');
});

it('what is not there cannot be cancelled', async () => {
  await expect(rig.cases.cancel('nothing')).rejects.toMatchObject({ code: 'request_not_found' });
});

/** A worker that takes up one job and does nothing with it. */
async function holdNextJob() {
  const url = process.env.REMUDA_TEST_REDIS_URL as string;
  const redis = connectRedis({ url, role: 'worker', name: 'test-worker', onError: () => {} });
  let told = (): void => {};
  let done = (): void => {};
  const taken = new Promise<void>((resolve) => {
    told = resolve;
  });
  const released = new Promise<void>((resolve) => {
    done = resolve;
  });
  const consumer = new JobConsumer({
    partition: PARTITION,
    redis,
    keyPrefix: rig.keys.space.prefix,
    concurrency: 1,
    lockMs: 30_000,
    handle: () => {
      told();
      return released;
    },
    onGivenUp: () => {},
    onLockLost: () => {},
    onError: () => {},
  });
  consumer.start();
  return {
    taken,
    async release() {
      done();
      await consumer.close();
      closeRedis(redis);
    },
  };
}
