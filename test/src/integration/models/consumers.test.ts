/** Consumers that come and go with what is loaded: closing them loses no job and delays none. */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '@remuda/core/lifecycle/clock';
import type { TakenJob } from '@remuda/core/queue/job-queue';
import { ModelConsumers } from '@remuda/worker';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LightFleet } from '../../support/light-fleet.js';

let fleet: LightFleet;
let aheadMs: number;
let done: string[];
let consumers: ModelConsumers;
beforeEach(async () => {
  fleet = new LightFleet({});
  // A look at the queue is left out while Redis is away.
  await fleet.redis.ping();
  aheadMs = 0;
  done = [];
  consumers = new ModelConsumers({
    ...{ redis: fleet.redis, keyPrefix: fleet.prefix, lockMs: 30_000 },
    clock: { ...systemClock, now: () => Date.now() + aheadMs },
    mayServe: () => true,
    handle: async ({ ticket }: TakenJob) => {
      done.push(ticket.requestId);
    },
    ...{ onGivenUp: () => {}, onLockLost: () => {}, onError: () => {} },
  });
});
afterEach(async () => {
  await consumers.close();
  await fleet.stop();
});

const need = { model: 'm', deviceClass: 'cpu', concurrency: 8 } as const;

it('consumers that are closed again and again while jobs come in run every job, once', async () => {
  const sent: string[] = [];
  let going = true;
  const load = (async () => {
    while (going) {
      sent.push(await fleet.enqueue('m', '1', { ring: false }));
      await sleep(2);
    }
  })();
  // Every one of them counts as idle for long, the moment that it has no job in hand.
  aheadMs = 60_000;
  for (let closed = 0; closed < 20; ) {
    consumers.open(need);
    await sleep(20);
    consumers.closeIdle(new Set());
    if (!consumers.isOpen('m', 'cpu')) closed++;
  }
  going = false;
  await load;
  consumers.open(need);
  await expect.poll(() => new Set(done).size).toBe(sent.length);
  expect(done.length).toBe(sent.length);
  await fleet.untilDrained('m');
});

it('a job that comes as its consumer closes is not left, though no one rings', async () => {
  for (let i = 1; i <= 10; i++) {
    consumers.open(need);
    aheadMs = 60_000;
    const adding = fleet.enqueue('m', '1', { ring: false });
    consumers.closeIdle(new Set());
    await adding;
    await expect.poll(() => done.length).toBe(i);
  }
});
