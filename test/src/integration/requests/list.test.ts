/** Listing: order, pages, filters, and a bound on what one call looks at. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { answer, type Rig, setup, stored, submission } from './rig.js';

let rig: Rig;
let time: number;
beforeEach(async () => {
  time = Date.now();
  rig = await setup({
    shards: 3,
    // A second between any two requests, so that their order is known.
    clock: { now: () => time, after: (ms, callback) => clearTimeout.bind(null, setTimeout(callback, ms)) },
  });
});
afterEach(() => rig.close());

async function submitMany(count: number, step = 1_000): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    time += step;
    const metadata = { priority: 5, tags: { parity: i % 2 ? 'odd' : 'even' } };
    ids.push((await rig.cases.submit(submission({ id: `r${i}`, metadata }))).record.request_id);
  }
  return ids;
}

async function pages(filter: Omit<Parameters<Rig['cases']['list']>[0], 'cursor'>): Promise<string[][]> {
  const found: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await rig.cases.list({ ...filter, cursor });
    found.push(page.requests.map(({ request_id }) => request_id));
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

it('gives pages newest first, each request once', async () => {
  await submitMany(7);
  expect(await pages({ limit: 3 })).toEqual([['r6', 'r5', 'r4'], ['r3', 'r2', 'r1'], ['r0']]);
});

it('ends without a further cursor when the last page is exactly full', async () => {
  await submitMany(4);
  expect(await pages({ limit: 2 })).toEqual([
    ['r3', 'r2'],
    ['r1', 'r0'],
  ]);
});

it('loses none of those that were accepted in one millisecond', async () => {
  await submitMany(25, 0);
  const found = (await pages({ limit: 4 })).flat();
  expect(found).toHaveLength(25);
  expect(new Set(found).size).toBe(25);
});

it('filters by model, status, tag and time', async () => {
  const from = time;
  await submitMany(6);
  await answer(rig.store, 'r2', ['ok']);
  const list = async (filter: object) => (await pages({ limit: 50, ...filter })).flat();
  expect(await list({ status: 'succeeded' })).toEqual(['r2']);
  expect(await list({ tag: { key: 'parity', value: 'odd' } })).toEqual(['r5', 'r3', 'r1']);
  expect(await list({ model: 'other' })).toEqual([]);
  expect(await list({ since: from + 2_000, until: from + 4_000 })).toEqual(['r3', 'r2', 'r1']);
});

it('gives back a cursor rather than look through everything', async () => {
  for (let i = 0; i < 10; i++) {
    time += 1_000;
    await rig.cases.submitMany(Array.from({ length: 250 }, () => submission()));
  }
  time -= 60_000;
  await rig.cases.submit(submission({ id: 'oldest', metadata: { priority: 5, tags: { rare: 'yes' } } }));
  const filter = { limit: 10, tag: { key: 'rare', value: 'yes' } };
  const first = await rig.cases.list(filter);
  expect(first.requests).toEqual([]);
  expect(first.next_cursor).not.toBeNull();
  expect((await pages(filter)).flat()).toEqual(['oldest']);
});

it('refuses a cursor that is none', async () => {
  await expect(rig.cases.list({ limit: 1, cursor: 'nonsense' })).rejects.toMatchObject({
    code: 'invalid_request',
    violations: [{ path: 'query.cursor' }],
  });
});

it('leaves out ids whose record has gone', async () => {
  await submitMany(3);
  await rig.redis.del(rig.keys.record('r1'));
  expect(await stored(rig.store, 'r1')).toBeNull();
  expect(await pages({ limit: 10 })).toEqual([['r2', 'r0']]);
});
