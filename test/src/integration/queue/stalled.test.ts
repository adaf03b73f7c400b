/** Jobs whose worker has died: when others get them, and how often that may happen to one. */
import { Deferred } from '@remuda/core/inference/deferred';
import { JobConsumer, type TakenJob } from '@remuda/core/queue/job-queue';
import { queueName, queuePrefix } from '@remuda/core/queue/partitions';
import { MAX_STALLED_COUNT } from '@remuda/core/queue/retry-policy';
import { closeRedis, connectRedis, type Redis } from '@remuda/core/store/redis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PARTITION, type Rig, setup, submission } from '../requests/rig.js';

/** So long that no test lives to see one run out. */
const LOCK_MS = 600_000;

let rig: Rig;
let consumers: JobConsumer[];
let connections: Redis[];
let givenUp: string[];
beforeEach(async () => {
  rig = await setup();
  consumers = [];
  connections = [];
  givenUp = [];
});
afterEach(async () => {
  for (const consumer of consumers) await consumer.close(true);
  for (const connection of connections) closeRedis(connection);
  await rig.close();
});

function startConsumer(handle: (job: TakenJob) => Promise<void>): JobConsumer {
  const url = process.env.REMUDA_TEST_REDIS_URL as string;
  const redis = connectRedis({ url, role: 'worker', name: 'test-consumer', onError() {} });
  connections.push(redis);
  const consumer = new JobConsumer({
    ...{
      partition: PARTITION,
      redis,
      keyPrefix: rig.keys.space.prefix,
      concurrency: 1,
      lockMs: LOCK_MS,
      handle,
    },
    onGivenUp: ({ requestId }) => givenUp.push(requestId),
    onLockLost() {},
    onError() {},
  });
  consumers.push(consumer);
  consumer.start();
  return consumer;
}

const keyOf = (requestId: string): string =>
  `${queuePrefix(rig.keys.space.prefix)}:${queueName(PARTITION)}:${requestId}`;

/** A job that a worker had when it died, long ago: its lock has run out. */
async function abandon(requestId: string): Promise<void> {
  const taken = new Deferred<void>();
  const dying = startConsumer(() => {
    taken.resolve();
    return new Promise(() => {});
  });
  await taken.promise;
  await dying.close(true);
  await rig.redis.del(`${keyOf(requestId)}:lock`);
}

function takenByAnother(): Promise<TakenJob> {
  return new Promise((resolve) => {
    startConsumer(async (job) => resolve(job));
  });
}

it('a job without a lock goes to another worker long before a whole lock time has passed', async () => {
  const { record } = await rig.cases.submit(submission());
  await abandon(record.request_id);
  const { ticket, token, suspect } = await takenByAnother();
  expect({ id: ticket.requestId, token, suspect }).toEqual({
    id: record.request_id,
    token: 2,
    suspect: true,
  });
});

it('a job that many killed workers have had is still run', async () => {
  const { record } = await rig.cases.submit(submission());
  await abandon(record.request_id);
  await rig.redis.hset(keyOf(record.request_id), 'stc', MAX_STALLED_COUNT - 1);
  expect((await takenByAnother()).ticket.requestId).toBe(record.request_id);
  expect(givenUp).toEqual([]);
});

it('a job that kills one worker after the other is given up at last', async () => {
  const { record } = await rig.cases.submit(submission());
  await abandon(record.request_id);
  await rig.redis.hset(keyOf(record.request_id), 'stc', MAX_STALLED_COUNT);
  startConsumer(() => new Promise(() => {}));
  await expect.poll(() => givenUp).toEqual([record.request_id]);
});
