/** Waiting: woken by the end, by nothing else, and never for longer than was asked. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { answer, type Rig, setup, submission, until } from './rig.js';

let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

const holders = async (): Promise<number> =>
  Number(/^remuda_wait_holders (\d+)/m.exec(await rig.metrics.text())?.[1] ?? Number.NaN);

it('wakes all who wait for a request as soon as it ends', async () => {
  const { record } = await rig.cases.submit(submission());
  const waits = [1, 2].map(() => rig.cases.waitFor(record.request_id, 20_000));
  await until('two wait', async () => (await holders()) === 2);
  const begun = Date.now();
  await answer(rig.store, record.request_id, ['ok']);
  const records = await Promise.all(waits);
  expect(records.map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
  // Below the re-check of five seconds: the message did it.
  expect(Date.now() - begun).toBeLessThan(2_000);
  expect(await holders()).toBe(0);
});

it('is woken by a cancellation too', async () => {
  const { record } = await rig.cases.submit(submission());
  const wait = rig.cases.waitFor(record.request_id, 20_000);
  await until('it waits', async () => (await holders()) === 1);
  const begun = Date.now();
  await rig.cases.cancel(record.request_id);
  expect((await wait).status).toBe('cancelled');
  expect(Date.now() - begun).toBeLessThan(2_000);
});

it('gives the record as it is when the time is up', async () => {
  const { record } = await rig.cases.submit(submission());
  expect((await rig.cases.waitFor(record.request_id, 50)).status).toBe('queued');
  expect(await holders()).toBe(0);
});

it('returns at once for what has ended, and for what is not there', async () => {
  const { record } = await rig.cases.submit(submission());
  await answer(rig.store, record.request_id, ['ok']);
  expect((await rig.cases.waitFor(record.request_id, 20_000)).status).toBe('succeeded');
  await expect(rig.cases.waitFor('nothing', 20_000)).rejects.toMatchObject({ code: 'request_not_found' });
});

it('lets go when the caller has gone', async () => {
  const { record } = await rig.cases.submit(submission());
  const gone = new AbortController();
  const wait = rig.cases.waitFor(record.request_id, 20_000, gone.signal);
  await until('it waits', async () => (await holders()) === 1);
  gone.abort();
  expect((await wait).status).toBe('queued');
});

it('finds an end whose message was lost', async () => {
  const { record } = await rig.cases.submit(submission());
  const wait = rig.cases.waitFor(record.request_id, 20_000);
  await until('it waits', async () => (await holders()) === 1);
  // The end as the script writes it, but without its message.
  await rig.redis.hset(rig.keys.record(record.request_id), { s: 'succeeded', fin: '1', exp: '2' });
  expect((await wait).status).toBe('succeeded');
});

it('looks again when the subscriber was away', async () => {
  const { record } = await rig.cases.submit(submission());
  const wait = rig.cases.waitFor(record.request_id, 20_000);
  await until('it waits', async () => (await holders()) === 1);
  await rig.redis.hset(rig.keys.record(record.request_id), { s: 'succeeded', fin: '1', exp: '2' });
  const begun = Date.now();
  await killSubscribers();
  expect((await wait).status).toBe('succeeded');
  expect(Date.now() - begun).toBeLessThan(3_000);
});

/** The subscriber of this rig alone: other tests use the same server. */
async function killSubscribers(): Promise<void> {
  const channel = rig.keys.ended();
  expect(await rig.redis.call('PUBSUB', 'NUMSUB', channel)).toEqual([channel, 1]);
  const list = (await rig.redis.call('CLIENT', 'LIST', 'TYPE', 'PUBSUB')) as string;
  const newest = list.trim().split('\n').at(-1) as string;
  await rig.redis.call('CLIENT', 'KILL', 'ID', /id=(\d+)/.exec(newest)?.[1] as string);
}

it('lets everybody go when the server stops', async () => {
  const { record } = await rig.cases.submit(submission());
  const wait = rig.cases.waitFor(record.request_id, 20_000);
  await until('it waits', async () => (await holders()) === 1);
  await rig.cases.stop();
  expect((await wait).status).toBe('queued');
});
