/** Waiting: woken by the end, by nothing else, and never for longer than was asked. */
import type { Clock } from '@remuda/core/lifecycle/clock';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { answer, type Rig, setup, submission, until } from './rig.js';

/** Time stands still until a test lets it pass: whoever is woken was woken by something else. */
class StillClock implements Clock {
  #now = Date.now();
  #timers = new Set<{ at: number; ms: number; callback: () => void }>();

  now = (): number => this.#now;

  after = (ms: number, callback: () => void): (() => void) => {
    const timer = { at: this.#now + ms, ms, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  };

  /** Whether somebody waits for up to a fifth less than that. */
  isAwaited = (most: number): boolean => this.awaited(most) > 0;

  /** How many do. */
  awaited = (most: number): number =>
    [...this.#timers].filter(({ ms }) => ms <= most && ms > most * 0.8).length;

  pass(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.#timers].filter(({ at }) => at <= this.#now)) {
      this.#timers.delete(timer);
      timer.callback();
    }
  }
}

/** After which a waiter looks by itself. */
const RECHECK_MS = 5_000;

let rig: Rig;
let clock: StillClock;
beforeEach(async () => {
  clock = new StillClock();
  rig = await setup({ clock });
});
afterEach(() => rig.close());

const holders = async (): Promise<number> =>
  Number(/^remuda_wait_holders (\d+)/m.exec(await rig.metrics.text())?.[1] ?? Number.NaN);

it('wakes all who wait for a request as soon as it ends', async () => {
  const { record } = await rig.cases.submit(submission());
  const waits = [1, 2].map(() => rig.cases.waitFor(record.request_id, 20_000));
  await until('two wait', async () => (await holders()) === 2);
  await answer(rig.store, record.request_id, ['ok']);
  const records = await Promise.all(waits);
  expect(records.map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
  expect(await holders()).toBe(0);
});

it('is woken by a cancellation too', async () => {
  const { record } = await rig.cases.submit(submission());
  const wait = rig.cases.waitFor(record.request_id, 20_000);
  await until('it waits', async () => (await holders()) === 1);
  await rig.cases.cancel(record.request_id);
  expect((await wait).status).toBe('cancelled');
});

it('gives the record as it is when the time is up', async () => {
  const { record } = await rig.cases.submit(submission());
  const wait = rig.cases.waitFor(record.request_id, 50);
  await until('it waits', () => clock.isAwaited(50));
  clock.pass(50);
  expect((await wait).status).toBe('queued');
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

/** As the script writes it, but without its message. */
const ENDED = { s: 'succeeded', fin: '1', exp: String(Date.now() + 3_600_000) };

it('finds an end whose message was lost', async () => {
  const { record } = await rig.cases.submit(submission());
  const before = clock.awaited(RECHECK_MS);
  const wait = rig.cases.waitFor(record.request_id, 20_000);
  await until('it waits', () => clock.awaited(RECHECK_MS) > before);
  await rig.redis.hset(rig.keys.record(record.request_id), ENDED);
  clock.pass(RECHECK_MS);
  expect((await wait).status).toBe('succeeded');
});

it('looks again when the subscriber was away', async () => {
  const { record } = await rig.cases.submit(submission());
  const wait = rig.cases.waitFor(record.request_id, 20_000);
  await until('it waits', () => clock.isAwaited(RECHECK_MS));
  await rig.redis.hset(rig.keys.record(record.request_id), ENDED);
  expect(await rig.redis.call('CLIENT', 'KILL', 'ID', rig.subscriberId)).toBe(1);
  expect((await wait).status).toBe('succeeded');
});

it('lets everybody go when the server stops', async () => {
  const { record } = await rig.cases.submit(submission());
  const wait = rig.cases.waitFor(record.request_id, 20_000);
  await until('it waits', async () => (await holders()) === 1);
  await rig.cases.stop();
  expect((await wait).status).toBe('queued');
});
