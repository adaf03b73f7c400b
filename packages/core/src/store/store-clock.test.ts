import { expect, it } from 'vitest';
import { StoreClock } from './store-clock.js';

/** Redis whose clock reads `redisNow`, reached in `wayMs` each way, from a host whose clock is wrong. */
function setup({ hostAheadMs = 0 } = {}) {
  const world = { now: 1_000_000, redisAheadMs: 0, thereMs: 5, backMs: 5, away: false };
  const timers: (() => void)[] = [];
  const clock = new StoreClock({
    monotonic: () => world.now - 990_000,
    host: {
      now: () => world.now + hostAheadMs,
      after: (_ms, callback) => {
        timers.push(callback);
        return () => {};
      },
    },
    redis: {
      time: (async () => {
        if (world.away) throw new Error('away');
        world.now += world.thereMs;
        const at = world.now + world.redisAheadMs;
        world.now += world.backMs;
        return [Math.floor(at / 1000), (at % 1000) * 1000];
      }) as never,
    },
  });
  return { clock, world, timers };
}

it('tells the time of Redis, however wrong the clock of the host is', async () => {
  const { clock, world } = setup({ hostAheadMs: -7_200_000 });
  expect(clock.now(), 'until it has asked, that of the host').toBe(world.now - 7_200_000);
  await clock.start();
  expect(clock.now()).toBe(world.now);
  expect(clock.hostAheadMs).toBe(-7_200_000);
  world.now += 4_321;
  expect(clock.now()).toBe(world.now);
});

it('believes a quick answer, not a slow one that says much the same', async () => {
  const { clock, world } = setup();
  await clock.start();
  Object.assign(world, { thereMs: 0, backMs: 400 });
  await clock.look();
  expect(clock.now()).toBe(world.now);
});

it('follows a Redis whose clock was set, or another that has taken its place', async () => {
  const { clock, world } = setup();
  await clock.start();
  world.redisAheadMs = 90_000;
  await clock.look();
  expect(clock.now()).toBe(world.now + 90_000);
});

it('starts without Redis, and asks again until it answers', async () => {
  const { clock, world, timers } = setup({ hostAheadMs: 5_000 });
  world.away = true;
  await clock.start();
  expect(clock.hostAheadMs).toBeNull();
  world.away = false;
  timers.pop()?.();
  await expect.poll(() => clock.hostAheadMs).toBe(5_000);
  await clock.stop();
});
