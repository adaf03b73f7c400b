/**
 * A subscription whose connection has died without a word: it looks well and brings nothing. For two seconds at most keys
 * are taken from memory then.
 */
import { ApiKeys } from '@remuda/core/access/api-keys';
import { Authenticator } from '@remuda/core/access/authenticator';
import type { Clock } from '@remuda/core/lifecycle/clock';
import { createMetrics } from '@remuda/core/observability/metrics';
import { StoreGuard } from '@remuda/core/requests/store-guard';
import { closeRedis, connectRedis, waitUntilReady } from '@remuda/core/store/redis';
import { expect, it } from 'vitest';
import { setup, until } from '../requests/rig.js';
import { issue } from './keys.js';

it('is not relied on for longer than two seconds, and again once it shows life', async () => {
  const { redis, keys, close } = await setup();
  const url = process.env.REMUDA_TEST_REDIS_URL as string;
  const subscriber = connectRedis({ url, role: 'subscriber', name: 'test-subscriber', onError() {} });
  await waitUntilReady(subscriber, 60_000);
  const clock = handClock();
  const store = new ApiKeys({ redis, keys });
  const guard = new StoreGuard(redis, createMetrics({ processMetrics: false }));
  const authenticator = new Authenticator({ store, guard, subscriber, keys, onError() {}, clock });
  try {
    await authenticator.start();
    await until('it hears', () => authenticator.hearsChanges);
    const { key, secret } = await issue({ redis, keys });
    const caller = await authenticator.authenticate(secret);
    expect(authenticator.authenticate(secret)).toBe(caller);
    subscriber.stream.pause();
    await store.revoke(key.id);
    clock.advance(1_999);
    // Known in memory, and nothing has come that says otherwise.
    expect(authenticator.authenticate(secret)).toBe(caller);
    clock.advance(1);
    await expect(authenticator.authenticate(secret)).rejects.toThrow(/was revoked/);
    subscriber.stream.resume();
    await until('it shows life', () => {
      clock.advance(500);
      return authenticator.hearsChanges;
    });
    await expect(Promise.resolve().then(() => authenticator.authenticate(secret))).rejects.toThrow(
      /was revoked/,
    );
  } finally {
    await authenticator.stop();
    closeRedis(subscriber);
    await close();
  }
});

function handClock(): Clock & { advance(ms: number): void } {
  let now = Date.now();
  const waiting = new Set<{ at: number; callback: () => void }>();
  return {
    now: () => now,
    after(ms, callback) {
      const entry = { at: now + ms, callback };
      waiting.add(entry);
      return () => waiting.delete(entry);
    },
    advance(ms) {
      now += ms;
      for (const entry of [...waiting]) {
        if (entry.at > now) continue;
        waiting.delete(entry);
        entry.callback();
      }
    },
  };
}
