/** Tenants as every process sees them without asking Redis. */
import { TenantView } from '@remuda/core/access/tenant-view';
import { Tenants } from '@remuda/core/access/tenants';
import { closeRedis, connectRedis, waitUntilReady } from '@remuda/core/store/redis';
import { TenantPut } from '@remuda/schemas';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Rig, setup, until } from '../requests/rig.js';

let rig: Rig;
let views: TenantView[];
let close: () => Promise<void>;
beforeEach(async () => {
  rig = await setup();
  const url = process.env.REMUDA_TEST_REDIS_URL as string;
  const subscriber = connectRedis({ url, role: 'subscriber', name: 'test-subscriber', onError() {} });
  await waitUntilReady(subscriber, 60_000);
  const { redis, keys } = rig;
  // Of two processes; only what is told can wake them, the poll is too far away.
  const options = { redis, subscriber, keys, onError() {}, everyMs: 2_000_000_000 };
  views = [new TenantView(options), new TenantView(options)];
  for (const view of views) await view.start();
  close = async () => {
    for (const view of views) await view.stop();
    closeRedis(subscriber);
    await rig.close();
  };
});
afterEach(() => close());

it('one of which nothing is set has weight 1 and no limits, and is the same object each time', () => {
  const tenant = views[0]?.of('new');
  expect(tenant).toEqual({
    name: 'new',
    weight: 1,
    limits: { max_waiting: null, max_waiting_rows: null, max_waiting_bytes: null },
    updated_at: null,
  });
  expect(views[0]?.of('new')).toBe(tenant);
});

it('what is set is seen by all as soon as it is told', async () => {
  const store = new Tenants(rig);
  await store.put('acme', TenantPut.parse({ weight: 2.5, limits: { max_waiting: 7 } }));
  for (const view of views) await until('it is seen', () => view.of('acme').weight === 2.5);
  expect(views[0]?.of('acme').limits.max_waiting).toBe(7);
  await store.put('acme', TenantPut.parse({}));
  for (const view of views) await until('it is the default again', () => view.of('acme').weight === 1);
  expect([...(views[0]?.known ?? [])].map(({ name }) => name)).toEqual(['acme']);
});

it('edits that come together are all whole: the last one stays', async () => {
  const store = new Tenants(rig);
  const puts = [1, 2, 3, 4, 5].map((weight) => TenantPut.parse({ weight, limits: { max_waiting: weight } }));
  await Promise.all(puts.map((put) => store.put('acme', put)));
  const { weight, limits } = await store.get('acme');
  expect(limits.max_waiting).toBe(weight);
});
