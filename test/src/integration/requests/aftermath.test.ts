/** What is to be done after a request has ended is noted with the end itself, and comes again until it is done. */
import { itemError } from '@remuda/core/errors';
import { Aftermath } from '@remuda/core/requests/aftermath';
import { prepareRequest } from '@remuda/core/requests/prepare-request';
import { Keys } from '@remuda/core/store/keys';
import { RequestStore } from '@remuda/core/store/request-store';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { answer, type Rig, setup, signature, submission } from './rig.js';

let rig: Rig;
let store: RequestStore;
let now: number;
let seen: string[];
let failures: number;
beforeEach(async () => {
  rig = await setup();
  // Keys of its own: the API of the rig looks at its aftermath too.
  store = new RequestStore(rig.redis, new Keys({ prefix: `${rig.keys.space.prefix}-after`, shards: 1 }));
  now = Date.now();
  seen = [];
  failures = 0;
});
afterEach(() => rig.close());

const route = { device_class: 'cpu', lane: 'interactive' as const, reasons: [] };

async function accepted(id: string, resultTtlS = 3_600): Promise<void> {
  const prepared = prepareRequest({
    submission: submission({ id }),
    signature: signature(),
    ...{ route, notices: [], defaultResultTtlS: resultTtlS, after: true, now },
  });
  expect(await store.accept(prepared)).toBe('accepted');
}

function aftermath(): Aftermath {
  const { redis } = rig;
  const clock = { now: () => now, after: () => () => {} };
  const handle = async ({ requestId }: StoredRecord): Promise<void> => {
    seen.push(requestId);
    if (failures-- > 0) throw new Error('not now');
  };
  return new Aftermath({ redis, subscriber: redis, store, clock, handlers: [{ handle }], onError: () => {} });
}

it('is not asked before the end', async () => {
  await accepted('early');
  await aftermath().turn();
  expect(seen).toEqual([]);
});

it('is asked once, however the request ends', async () => {
  await accepted('ran');
  await accepted('stopped');
  await answer(store, 'ran', ['ok']);
  await store.end('stopped', 'cancelled', itemError('cancelled', 'not wanted'));
  now = Date.now() + 1;
  const pump = aftermath();
  await pump.turn();
  now += 60_000;
  await pump.turn();
  expect(seen.sort()).toEqual(['ran', 'stopped']);
});

it('comes again where it failed, but not at once', async () => {
  await accepted('twice');
  await answer(store, 'twice', ['ok']);
  failures = 1;
  now = Date.now() + 1;
  const pump = aftermath();
  await pump.turn();
  await pump.turn();
  expect(seen).toEqual(['twice']);
  now += 20_000;
  await pump.turn();
  expect(seen).toEqual(['twice', 'twice']);
});

it('keeps the record for it beyond a short retention, and no longer than that', async () => {
  await accepted('short', 1);
  await answer(store, 'short', ['ok']);
  expect(await rig.redis.pttl(store.keys.record('short'))).toBeGreaterThan(3_600_000);
  now = Date.now() + 1;
  await aftermath().turn();
  expect(await rig.redis.pttl(store.keys.record('short'))).toBeLessThanOrEqual(1_000);
});

it('of a request that came while the end of an earlier one of that id was told is not taken for done', async () => {
  await accepted('reused');
  await answer(store, 'reused', ['ok']);
  now = Date.now() + 1;
  const { redis } = rig;
  const clock = { now: () => now, after: () => () => {} };
  const handle = async ({ nonce }: StoredRecord): Promise<void> => {
    seen.push(nonce);
    if (seen.length > 1) return;
    await store.withdraw('reused', nonce);
    await accepted('reused');
    await answer(store, 'reused', ['ok']);
  };
  const pump = new Aftermath({
    redis,
    subscriber: redis,
    store,
    clock,
    handlers: [{ handle }],
    onError: () => {},
  });
  await pump.turn();
  now += 60_000;
  await pump.turn();
  expect(new Set(seen).size).toBe(2);
});
