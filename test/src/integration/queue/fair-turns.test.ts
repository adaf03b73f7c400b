/** The order of jobs in Redis is that of packages/core/src/fairness, whatever comes, goes and comes back. */
import { randomBytes } from 'node:crypto';
import { PRIORITIES, PRIORITY_STEP_ROWS } from '@remuda/core/fairness/fair-tags';
import { FIRST_SCORE, PARTS_OF_ROW } from '@remuda/core/fairness/places';
import { SimulatedQueue, sequence } from '@remuda/core/fairness/simulated-queue.fixture';
import { JobConsumer, JobQueue, type JobTicket, type TakenJob } from '@remuda/core/queue/job-queue';
import { queueName, queuePrefix } from '@remuda/core/queue/partitions';
import { closeRedis, connectRedis, type Redis } from '@remuda/core/store/redis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../requests/rig.js';

const PARTITION = { model: 'm', deviceClass: 'cpu', lane: 'interactive' } as const;
const WEIGHTS: Record<string, number> = { ann: 1, bob: 2, eve: 0.3 };
const STEP = 20;

let redis: Redis;
let prefix: string;
let ids: number;
const closers: (() => Promise<void>)[] = [];
beforeEach(async () => {
  prefix = `fair-${randomBytes(6).toString('hex')}`;
  ids = 0;
  redis = connectRedis({
    url: process.env.REMUDA_TEST_REDIS_URL as string,
    ...{ role: 'worker', name: 'test', onError: () => {} },
  });
  await redis.ping();
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  const keys = await redis.keys(`${prefix}*`);
  if (keys.length > 0) await redis.unlink(...keys);
  closeRedis(redis);
});

const key = (name: string): string => `${queuePrefix(prefix)}:${queueName(PARTITION)}:${name}`;

function newQueue(options: { scoreRoom?: number; priorityStepRows?: number } = {}): JobQueue {
  const queue = new JobQueue(PARTITION, {
    ...{ redis, keyPrefix: prefix, onError: () => {} },
    weightOf: (tenant) => WEIGHTS[tenant] ?? 1,
    ...{ priorityStepRows: STEP, ...options },
  });
  closers.push(() => queue.close());
  return queue;
}

function ticket(tenant: string | undefined, priority = 5, rows = 1): JobTicket {
  return {
    requestId: `r${ids++}`,
    ...{ nonce: 'n', version: '1', traceId: 't', acceptedAt: 1, deadline: 0, inline: true, tokenBase: 0 },
    ...(tenant === undefined ? {} : { tenant }),
    ...{ priority, units: [[1, rows, 'g']] },
  };
}

/** Takes the first off, as BullMQ's own script does. */
async function pop(): Promise<string | undefined> {
  const [id] = (await redis.zpopmin(key('prioritized'))) as string[];
  if (id !== undefined) await redis.unlink(key(id));
  return id;
}

async function orderOf(): Promise<string[]> {
  return redis.zrange(key('prioritized'), '0', '-1');
}

/** The same comings and goings in Redis and in memory; ids are in the order of arrival. */
async function compare(queue: JobQueue, seed: number, steps: number): Promise<void> {
  const random = sequence(seed);
  const model = new SimulatedQueue(STEP);
  let added = 0;
  for (let step = 0; step < steps; step++) {
    const adds = random(4);
    const sent: Promise<void>[] = [];
    for (let at = 0; at < adds; at++) {
      const tenant = Object.keys(WEIGHTS)[random(3)] as string;
      const [priority, rows] = [random(PRIORITIES), random(30)];
      added++;
      model.add({ tenant, weight: WEIGHTS[tenant] as number, priority, rows });
      sent.push(queue.add(ticket(tenant, priority, rows)));
    }
    await Promise.all(sent);
    const takes = random(4);
    for (let at = 0; at < takes; at++) {
      const expected = model.serve();
      expect(await pop()).toBe(expected && `r${expected.at}`);
    }
  }
  while (model.waiting > 0) expect(await pop()).toBe(`r${model.serve()?.at}`);
  expect(added).toBeGreaterThan(steps);
}

describe('jobs in Redis', () => {
  it('go in the order of start-time fair queuing', async () => {
    for (let seed = 1; seed <= 4; seed++) {
      await compare(newQueue(), seed, 120);
      await redis.unlink(key('pc'));
      ids = 0;
    }
  });

  it('keep that order when the room for scores runs out again and again, moved down a few at a time', async () => {
    // Rows until everything has to be moved once.
    const rows = 4_000;
    const room = 2 * rows * PARTS_OF_ROW * 16 * 256;
    const queue = newQueue({ scoreRoom: room });
    const model = new SimulatedQueue(STEP);
    const random = sequence(9);
    const waiting = 300;
    // As many of each as it may have, or the line of one would grow longer than the room.
    const senders = ['ann', 'ann', 'ann', 'bob', 'bob', 'bob', 'bob', 'bob', 'bob', 'eve'];
    const add = async (): Promise<void> => {
      const tenant = senders[random(senders.length)] as string;
      const [priority, jobRows] = [random(PRIORITIES), random(30)];
      model.add({ tenant, weight: WEIGHTS[tenant] as number, priority, rows: jobRows });
      await queue.add(ticket(tenant, priority, jobRows));
    };
    for (let at = 0; at < waiting; at++) await add();
    let whileMoving = 0;
    for (let at = 0; at < 4_000; at++) {
      await add();
      expect(await pop()).toBe(`r${model.serve()?.at}`);
      if ((await redis.hexists(key('fair:clock'), 'cut')) === 1) whileMoving++;
      if (at % 10 === 0) {
        const [last] = await redis.zrange(key('prioritized'), '-1', '-1');
        expect(Number(await redis.zscore(key('prioritized'), last as string))).toBeLessThan(
          FIRST_SCORE + room,
        );
      }
    }
    while (model.waiting > 0) expect(await pop()).toBe(`r${model.serve()?.at}`);
    expect(whileMoving, 'it was looked at in the middle of a move').toBeGreaterThan(0);
    expect(Number(await redis.hget(key('fair:clock'), 'base'))).toBeGreaterThanOrEqual(3 * rows);
  });

  it('let a last one be overtaken by at most nine steps of its tenant’s later rows', async () => {
    const queue = newQueue();
    for (let at = 0; at < 200; at++) await queue.add(ticket('ann'));
    const last = ticket('ann', 9);
    await queue.add(last);
    for (let at = 0; at < 400; at++) await queue.add(ticket('ann', 0));
    const before = (await queue.position(last.requestId)) as number;
    expect(before).toBeGreaterThanOrEqual(200 + (PRIORITIES - 1) * STEP - 1);
    expect(before).toBeLessThanOrEqual(200 + (PRIORITIES - 1) * STEP);
  });

  it('let who comes new wait for one job of each other tenant', async () => {
    const queue = newQueue();
    await queue.addMany(Array.from({ length: 1_000 }, () => ticket('eve')));
    await queue.addMany(Array.from({ length: 1_000 }, () => ticket('bob')));
    for (let at = 0; at < 100; at++) await pop();
    const single = ticket('ann');
    await queue.add(single);
    expect(await queue.position(single.requestId)).toBeLessThanOrEqual(2);
  });

  it('are counted before one that is not added yet, as they are once it is', async () => {
    const queue = newQueue();
    expect(await queue.countBefore('ann', 5)).toBe(0);
    for (let at = 0; at < 50; at++)
      for (const tenant of Object.keys(WEIGHTS))
        await queue.add(ticket(tenant, at % PRIORITIES, 1 + (at % 7)));
    for (const [tenant, priority] of [
      ['ann', 9],
      ['eve', 0],
      ['new', 5],
    ] as const) {
      const before = await queue.countBefore(tenant, priority);
      const added = ticket(tenant, priority);
      await queue.add(added);
      expect(await queue.position(added.requestId)).toBe(before);
    }
  });

  it('of one tenant and one priority stay in the order of arrival', async () => {
    const queue = newQueue();
    const tickets = Array.from({ length: 2_000 }, () => ticket('ann', 5, 0));
    await queue.addMany(tickets);
    expect(await orderOf()).toEqual(tickets.map(({ requestId }) => requestId));
  });

  it('are charged once however often they are added', async () => {
    const queue = newQueue();
    const first = ticket('ann', 5, 100);
    for (let at = 0; at < 5; at++) await queue.add(first);
    await queue.add(ticket('bob', 5, 400));
    await queue.add(ticket('bob', 5, 400));
    const second = ticket('ann', 5, 1);
    await queue.add(second);
    // At 100 of virtual time; the second of bob, who has twice the weight, is at 200.
    expect(await queue.position(second.requestId)).toBe(2);
    expect(await queue.position(first.requestId)).toBe(0);
  });

  it('without a tenant, as older builds made them, are of the default one; those that such a build adds go first', async () => {
    const queue = newQueue({ priorityStepRows: PRIORITY_STEP_ROWS });
    const ours = ticket(undefined);
    await queue.add(ours);
    // Priority 6 of BullMQ: what an API of an older build gave to 5.
    await redis.zadd(key('prioritized'), 6 * 2 ** 32 + 7, 'older');
    expect(await orderOf()).toEqual(['older', ours.requestId]);
    const next = ticket('default');
    await queue.add(next);
    expect(await orderOf()).toEqual(['older', ours.requestId, next.requestId]);
  });
});

describe('a job that is given back', () => {
  it('goes before all that wait: what was begun is finished first', async () => {
    const queue = newQueue();
    const begun = ticket('ann', 9);
    await queue.add(begun);
    const taken: string[] = [];
    const consumer = new JobConsumer({
      ...{ partition: PARTITION, redis, keyPrefix: prefix, concurrency: 1, lockMs: 30_000 },
      handle: async (job: TakenJob) => {
        taken.push(job.ticket.requestId);
        if (taken.length > 1) return;
        await queue.addMany([ticket('bob', 0), ticket('ann', 0), ticket('eve', 0)]);
        throw await job.handBack();
      },
      ...{ onGivenUp: () => {}, onLockLost: () => {}, onError: () => {} },
    });
    consumer.start();
    await until('all are taken', () => taken.length === 5);
    await consumer.close();
    expect(taken.slice(0, 2)).toEqual([begun.requestId, begun.requestId]);
  });
});
