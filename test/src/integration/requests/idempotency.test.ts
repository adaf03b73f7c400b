/** A call whose process stood still for longer than its lease, while another went on with it. */
import { CallOnce, Idempotency } from '@remuda/core/requests/idempotency';
import { StoreGuard } from '@remuda/core/requests/store-guard';
import { OnceStore } from '@remuda/core/store/once-store';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { answer, type Rig, setup, submission } from './rig.js';

let rig: Rig;
let calls: Idempotency;
beforeEach(async () => {
  rig = await setup();
  const { redis, keys, metrics } = rig;
  const store = new OnceStore(redis, keys);
  const guard = new StoreGuard(redis, metrics);
  // Its lease is over as soon as it has begun.
  calls = new Idempotency({ store, guard, metrics, ttlMs: 60_000, leaseMs: 0, onError: () => {} });
});
afterEach(() => rig.close());

const CALL = { tenant: 'default', key: 'key', fingerprint: 'content' };
const ANSWER = { status: 202, headers: {}, body: '"second"' };
const begin = async () => (await calls.begin(CALL)) as CallOnce;
const submit = (call: CallOnce) => rig.cases.submit({ ...submission(), reserved: call.reserve(0) });

it('both make the same request, and the answer of the later call counts', async () => {
  const [slow, quick] = [await begin(), await begin()];
  const first = await submit(quick);
  const again = await submit(slow);
  expect([first.known, again.known]).toEqual([false, true]);
  expect(again.record.request_id).toBe(first.record.request_id);
  await slow.accepted({ ...ANSWER, body: '"first"' }, [first.record.request_id]);
  await quick.accepted(ANSWER, [first.record.request_id]);
  expect(await calls.begin(CALL)).toEqual(ANSWER);
});

it('what was accepted is not accepted anew while no answer is kept, though its record is gone', async () => {
  const [slow, quick] = [await begin(), await begin()];
  const { record } = await submit(slow);
  await slow.accepted(ANSWER, [record.request_id]);
  await answer(rig.store, record.request_id, ['ok']);
  await rig.redis.del(rig.keys.record(record.request_id));
  await expect(submit(quick)).rejects.toMatchObject({ code: 'request_not_found' });
  await quick.refused(new Error('died'));
  expect(await calls.begin(CALL)).toBeInstanceOf(CallOnce);
});

it('of two tenants one key is two', async () => {
  const mine = await begin();
  const theirs = (await calls.begin({ ...CALL, tenant: 'other', fingerprint: 'else' })) as CallOnce;
  expect(theirs.reserve(0).requestId).not.toBe(mine.reserve(0).requestId);
});

it('an id that was withdrawn may be accepted again', async () => {
  const call = await begin();
  const { record } = await submit(call);
  const [stored] = await rig.store.read([record.request_id]);
  await rig.store.withdraw(record.request_id, stored?.nonce as string);
  expect((await submit(call)).known).toBe(false);
});
