/** Requests may be called what BullMQ calls its own keys. */
import { JobConsumer } from '@remuda/core/queue/job-queue';
import { closeRedis, connectRedis } from '@remuda/core/store/redis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PARTITION, type Rig, setup, submission } from '../requests/rig.js';

let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

it('a request called like a list of its queue waits, is found, is run, and harms no other', async () => {
  const names = ['wait', 'active', 'prioritized', 'meta', 'marker', 'stalled', 'events', 'id'];
  for (const id of [...names, 'ordinary']) await rig.cases.submit(submission({ id }));
  const queue = rig.queues.of(PARTITION);
  expect(await queue.depth()).toEqual({ waiting: names.length + 1, active: 0 });
  expect(await queue.has('wait')).toBe(true);
  expect(await queue.position('active')).toBe(1);
  expect((await queue.waiting(100)).map(({ requestId }) => requestId)).toEqual([...names, 'ordinary']);
  await rig.cases.cancel('meta');
  const url = process.env.REMUDA_TEST_REDIS_URL as string;
  const redis = connectRedis({ url, role: 'worker', name: 'test-consumer', onError() {} });
  const run: string[] = [];
  const consumer = new JobConsumer({
    ...{ partition: PARTITION, redis, keyPrefix: rig.keys.space.prefix, concurrency: 1, lockMs: 60_000 },
    handle: async ({ ticket }) => void run.push(ticket.requestId),
    ...{ onGivenUp() {}, onLockLost() {}, onError() {} },
  });
  consumer.start();
  await expect.poll(() => run.length).toBe(names.length);
  expect(run).toEqual([...names.filter((name) => name !== 'meta'), 'ordinary']);
  await expect.poll(() => queue.depth()).toEqual({ waiting: 0, active: 0 });
  await consumer.close();
  closeRedis(redis);
});
