/** Taking back what a caller was told is not accepted, against the same id being sent again. */

import { silentLogger } from '@remuda/core/observability/logger';
import { ticketOf } from '@remuda/core/queue/job-queue';
import { acceptedAnew } from '@remuda/core/requests/accepted-anew';
import { Withdrawals } from '@remuda/core/requests/withdrawals';
import type { Acceptance } from '@remuda/core/store/request-store';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { answer, PARTITION, type Rig, setup, stored, submission, until } from './rig.js';

let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

/** The acceptance of a request that has been submitted, to be sent again under other nonces. */
async function acceptanceOf(id: string): Promise<Acceptance> {
  const record = await stored(rig.store, id);
  const fingerprint = (await rig.redis.hget(rig.keys.record(id), 'fp')) as string;
  if (!record) throw new Error('not there');
  const { document, nonce, acceptedAt, deadline, finishDeadline, resultTtlMs } = record;
  return {
    ...{ requestId: id, nonce, fingerprint, acceptedAt, deadline, finishDeadline, resultTtlMs, document },
    after: false,
    payloads: [Buffer.from('frame')],
  };
}

it('removes record, listing and job of a request nobody was promised', async () => {
  await rig.cases.submit(submission({ id: 'mine' }));
  const { nonce } = await acceptanceOf('mine');
  const withdrawals = new Withdrawals({
    store: rig.store,
    queues: rig.queues,
    ready: () => true,
    logger: silentLogger,
  });
  withdrawals.add({ requestId: 'mine', nonce, partition: PARTITION });
  await until('record gone', async () => (await stored(rig.store, 'mine')) === null);
  await until('job gone', async () => !(await rig.queues.of(PARTITION).has('mine')));
  expect(await rig.store.countOpen()).toBe(0);
  expect(await rig.store.list(null, 10)).toEqual([]);
  await withdrawals.stop();
});

it('leaves a request alone that was accepted again since', async () => {
  await rig.cases.submit(submission({ id: 'mine' }));
  const first = await acceptanceOf('mine');
  expect(await rig.store.accept({ ...first, nonce: 'second' })).toBe('known');
  expect(await rig.store.withdraw('mine', first.nonce)).toBe('held');
  expect(await stored(rig.store, 'mine')).not.toBeNull();
});

it('never takes a request from the call that was told 202, when a repeated call failed', async () => {
  await rig.cases.submit(submission({ id: 'mine' }));
  const first = await acceptanceOf('mine');
  await rig.store.accept({ ...first, nonce: 'second' });
  expect(await rig.store.withdraw('mine', 'second')).toBe('held');
  expect(await rig.store.withdraw('mine', 'second')).toBe('held');
  expect(await stored(rig.store, 'mine')).not.toBeNull();
});

it('removes a request once every call that sent it was refused', async () => {
  await rig.cases.submit(submission({ id: 'mine' }));
  const first = await acceptanceOf('mine');
  await rig.store.accept({ ...first, nonce: 'second' });
  expect(await rig.store.withdraw('mine', first.nonce)).toBe('held');
  expect(await rig.store.withdraw('mine', 'second')).toBe('removed');
  expect(await rig.store.withdraw('mine', 'second')).toBe('absent');
});

it('gives a request its job back that was accepted while the old job was being removed', async () => {
  await rig.cases.submit(submission({ id: 'mine' }));
  const first = await acceptanceOf('mine');
  // The moment between the two steps of a withdrawal: the record has gone, its job has not.
  let between = async (): Promise<void> => {};
  const store = Object.create(rig.store) as typeof rig.store;
  store.withdraw = async (id, nonce) => {
    const verdict = await rig.store.withdraw(id, nonce);
    await between();
    return verdict;
  };
  between = async () => {
    await rig.cases.submit(submission({ id: 'mine' }));
  };
  store.read = (ids) => rig.store.read(ids);
  const withdrawals = new Withdrawals({ store, queues: rig.queues, ready: () => true, logger: silentLogger });
  withdrawals.add({ requestId: 'mine', nonce: first.nonce, partition: PARTITION });
  await until('withdrawn once', async () => (await stored(rig.store, 'mine'))?.nonce !== first.nonce);
  const record = await stored(rig.store, 'mine');
  await until('the new job', async () => {
    const key = `${rig.keys.space.prefix}:queue:{model/cpu/interactive}:mine`;
    const data = await rig.redis.hget(key, 'data');
    return data === JSON.stringify(ticketOf(record as never));
  });
  await withdrawals.stop();
});

it('takes back a request that has already ended', async () => {
  await rig.cases.submit(submission({ id: 'mine' }));
  const { nonce } = await acceptanceOf('mine');
  await answer(rig.store, 'mine', ['ok']);
  expect(await rig.store.withdraw('mine', nonce)).toBe('removed');
  await expect(rig.cases.get('mine')).rejects.toMatchObject({ code: 'request_not_found' });
});

it('the job of one that is gone is not passed on to a follower of that id, which has none', async () => {
  const config = { result_cache: { ttl_s: 60, max_bytes: 1_000, shared: false } };
  const cached = await setup({ config });
  await cached.cases.submit(submission({ id: 'leader' }));
  await cached.cases.submit(submission({ id: 'follower' }));
  const asked = { requestId: 'follower', nonce: 'gone' };
  expect(await acceptedAnew(asked, PARTITION, cached.store)).toBeNull();
  expect(await acceptedAnew({ ...asked, requestId: 'leader' }, PARTITION, cached.store)).not.toBeNull();
  await cached.close();
});

it('puts a job that was accepted anew meanwhile into the queue where it belongs', async () => {
  await rig.cases.submit(submission({ id: 'mine' }));
  const gone = {
    requestId: 'mine',
    nonce: 'gone',
    partition: { ...PARTITION, deviceClass: 'cuda' as const },
  };
  // As the second withdrawal finds it: no record at the first look, one of another queue at the next.
  const store = {
    withdraw: async () => 'absent',
    read: (ids: string[]) => rig.store.read(ids),
  } as unknown as typeof rig.store;
  const withdrawals = new Withdrawals({ store, queues: rig.queues, ready: () => true, logger: silentLogger });
  withdrawals.add(gone);
  await until('taken back', () => withdrawals.size === 1);
  await withdrawals.stop();
  expect(await rig.queues.of(gone.partition).has('mine')).toBe(false);
  expect(await rig.queues.of(PARTITION).has('mine')).toBe(true);
});
