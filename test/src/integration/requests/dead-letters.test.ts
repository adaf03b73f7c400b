/** Dead letters in the store: what becomes one, with which inputs, and what takes them away. */
import { randomBytes } from 'node:crypto';
import { itemError } from '@remuda/core/errors';
import { prepareRequest } from '@remuda/core/requests/prepare-request';
import { Keys, type LetterLimits } from '@remuda/core/store/keys';
import { LetterStore } from '@remuda/core/store/letter-store';
import { RequestStore } from '@remuda/core/store/request-store';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import type { ErrorCode } from '@remuda/schemas';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { outcome, type Rig, setup, signature, stored, submission, unitOf } from './rig.js';

let rig: Rig;
let store: RequestStore;
let letters: LetterStore;
beforeEach(async () => {
  rig = await setup();
  use({ keptMs: 3_600_000, most: 1_000, mostBytes: 1_000_000 });
});
afterEach(() => rig.close());

/** Keys of its own, below those that the rig takes away. */
function use(limits: LetterLimits): void {
  const prefix = `${rig.keys.space.prefix}-${randomBytes(4).toString('hex')}`;
  const keys = new Keys({ prefix, shards: 1, letters: limits });
  store = new RequestStore(rig.redis, keys);
  letters = new LetterStore(rig.redis, keys);
}

async function accept(id: string, values: number[], width = 4): Promise<StoredRecord> {
  const route = { device_class: 'cpu', lane: 'interactive' as const, reasons: [] };
  const prepared = prepareRequest({
    submission: submission({ id, values, width }),
    signature: signature({
      inputs: [{ name: 'x', datatype: 'FP32', shape: ['n', 'w'], batch_axis: 0, kind: 'tensor' }],
    }),
    ...{ route, notices: [], defaultResultTtlS: 60, after: false, now: Date.now() },
  });
  expect(await store.accept(prepared)).toBe('accepted');
  return (await stored(store, id)) as StoredRecord;
}

/** Each item succeeds, or fails with its code. */
async function answer(record: StoredRecord, codes: (ErrorCode | 'ok')[]): Promise<void> {
  const units = codes.map((_, item) => unitOf(record, item));
  await store.claimAndFetch(units, 'worker');
  const writes = codes.map((code, item) => {
    const unit = unitOf(record, item);
    if (code === 'ok') return outcome(unit, 'ok');
    return { ...outcome(unit, 'error'), error: itemError(code, `item ${item} failed`) };
  });
  await store.writeOutcomes(writes);
}

const listed = async (): Promise<string[]> => (await letters.list(null, 100)).map(({ id }) => id);

/** Wide rows do not fit into the record. */
for (const [size, width] of [
  ['small', 4],
  ['large', 4_096],
] as const) {
  it(`keeps the inputs of the items that were given up, and no others: ${size} ones`, async () => {
    const record = await accept('some', [1, 2, 3], width);
    const frames = await store.claimAndFetch([unitOf(record, 1)], 'worker');
    await answer(record, ['ok', 'runner_crashed', 'item_rejected']);
    const letter = await letters.read('some');
    expect(letter?.errors.map(({ item, error }) => [item, error.code])).toEqual([[1, 'runner_crashed']]);
    const claim = frames[0] as { payload: Uint8Array };
    expect(await letters.inputs(letter as NonNullable<typeof letter>)).toEqual([Buffer.from(claim.payload)]);
    expect(await letters.totals()).toEqual({ letters: 1, bytes: claim.payload.length });
  });

  it(`a single item that was given up has its input kept: a ${size} one`, async () => {
    const record = await accept('one', [7], width);
    await answer(record, ['run_timeout']);
    const letter = await letters.read('one');
    const [frame] = await letters.inputs(letter as NonNullable<typeof letter>);
    expect(frame?.length).toBe(letter?.inputBytes);
    expect(await letters.drop(['one'])).toBe(1);
    expect(await letters.totals()).toEqual({ letters: 0, bytes: 0 });
    // The record and its list are all that is left.
    const left = await rig.redis.keys(`${store.keys.space.prefix}:*`);
    expect(left.filter((key) => /:(d|dp|p):/.test(key))).toEqual([]);
  });
}

it('what was wrong with the input itself, or was not wanted any more, is none', async () => {
  await answer(await accept('rejected', [1]), ['item_rejected']);
  await accept('stopped', [1]);
  await store.end('stopped', 'cancelled', itemError('cancelled', 'no'));
  await accept('late', [1]);
  await store.end('late', 'expired', itemError('deadline_exceeded', 'late'));
  expect(await listed()).toEqual([]);
});

it('a request that is given up as a whole keeps what has no outcome yet', async () => {
  const record = await accept('lost', [1, 2]);
  const [first] = [unitOf(record, 0)];
  await store.claimAndFetch([first], 'worker');
  await store.writeOutcomes([outcome(first, 'ok')]);
  await store.end('lost', 'failed', itemError('worker_lost', 'gone'));
  expect((await letters.read('lost'))?.errors.map(({ item }) => item)).toEqual([1]);
});

it('is no letter before its request has ended', async () => {
  const record = await accept('open', [1, 2]);
  const unit = unitOf(record, 0);
  await store.claimAndFetch([unit], 'worker');
  await store.writeOutcomes([{ ...outcome(unit, 'error'), error: itemError('runner_crashed', 'x') }]);
  expect(await letters.read('open')).toBeNull();
  expect(await listed()).toEqual([]);
  await store.writeOutcomes([outcome(unitOf(record, 1), 'ok')]);
  expect(await listed()).toEqual(['open']);
});

it('the oldest make room where there are too many, or too much', async () => {
  use({ keptMs: 3_600_000, most: 2, mostBytes: 1_000_000 });
  for (const id of ['a', 'b', 'c']) await answer(await accept(id, [1]), ['runner_crashed']);
  expect((await listed()).sort()).toEqual(['b', 'c']);
  const { bytes } = await letters.totals();
  use({ keptMs: 3_600_000, most: 1_000, mostBytes: bytes });
  for (const id of ['d', 'e', 'f']) await answer(await accept(id, [1]), ['runner_crashed']);
  expect((await listed()).sort()).toEqual(['e', 'f']);
  expect((await letters.totals()).bytes).toBe(bytes);
});

it('they go when their time is over', async () => {
  await answer(await accept('old', [1]), ['runner_crashed']);
  expect(await letters.trim(Date.now() + 3_599_000)).toBe(0);
  expect(await letters.trim(Date.now() + 3_601_000)).toBe(1);
  expect(await listed()).toEqual([]);
});

/** What is left of the letters themselves, however they were kept. */
async function leftOfLetters(): Promise<string[]> {
  const keys = await rig.redis.keys(`${store.keys.space.prefix}:*`);
  return keys.filter((key) => /:(d|dp|p):/.test(key));
}

/** The first item is given up, the second has no outcome yet. */
async function halfGivenUp(id: string): Promise<StoredRecord> {
  const record = await accept(id, [1, 2], 4_096);
  const unit = unitOf(record, 0);
  await store.claimAndFetch([unit], 'worker');
  await store.writeOutcomes([{ ...outcome(unit, 'error'), error: itemError('runner_crashed', 'x') }]);
  return record;
}

it('what was given up before its request is cancelled is a letter, and its input goes with that', async () => {
  await halfGivenUp('half');
  await store.end('half', 'cancelled', itemError('cancelled', 'no'));
  expect((await letters.read('half'))?.errors.map(({ item }) => item)).toEqual([0]);
  expect(await letters.drop(['half'])).toBe(1);
  expect(await leftOfLetters()).toEqual([]);
});

it('a request that is taken back leaves no letter and no input', async () => {
  const open = await halfGivenUp('open');
  expect(await store.withdraw('open', open.nonce)).toBe('removed');
  const ended = await accept('ended', [1, 2], 4_096);
  await answer(ended, ['runner_crashed', 'ok']);
  expect(await store.withdraw('ended', ended.nonce)).toBe('removed');
  expect(await letters.totals()).toEqual({ letters: 0, bytes: 0 });
  expect(await leftOfLetters()).toEqual([]);
});

it('inputs of a request that never ends go with its letter', async () => {
  const record = await halfGivenUp('endless');
  const key = store.keys.letterPayload('endless', record.nonce, 0);
  expect(await rig.redis.pttl(key)).toBeGreaterThan(0);
  await store.writeOutcomes([outcome(unitOf(record, 1), 'ok')]);
  expect(await rig.redis.pttl(key)).toBe(-1);
});

/** Its record is kept for a shorter time than its letter. */
const outliveRecord = (id: string): Promise<unknown> => rig.redis.del(store.keys.record(id));

it('an id that is given up twice has the letter of the second time alone', async () => {
  await answer(await accept('twice', [1, 2, 3], 4_096), ['ok', 'runner_crashed', 'runner_crashed']);
  await outliveRecord('twice');
  const again = await accept('twice', [4, 5], 4_096);
  const [claim] = await store.claimAndFetch([unitOf(again, 0)], 'worker');
  const { payload } = claim as { payload: Uint8Array };
  const frame = Buffer.from(payload);
  await answer(again, ['run_timeout', 'ok']);
  const letter = await letters.read('twice');
  expect(letter?.errors.map(({ item, error }) => [item, error.code])).toEqual([[0, 'run_timeout']]);
  expect(await letters.inputs(letter as NonNullable<typeof letter>)).toEqual([frame]);
  expect(await letters.totals()).toEqual({ letters: 1, bytes: frame.length });
  await letters.drop(['twice']);
  expect(await letters.totals()).toEqual({ letters: 0, bytes: 0 });
  expect(await leftOfLetters()).toEqual([]);
});

it('a letter stays as it is when its id is used again and that ends otherwise', async () => {
  await answer(await accept('reused', [1], 4_096), ['runner_crashed']);
  const before = (await letters.read('reused')) as NonNullable<Awaited<ReturnType<LetterStore['read']>>>;
  for (const code of ['item_rejected', 'ok'] as const) {
    await outliveRecord('reused');
    await answer(await accept('reused', [2], 4_096), [code]);
  }
  await outliveRecord('reused');
  await accept('reused', [2], 4_096);
  await store.end('reused', 'cancelled', itemError('cancelled', 'no'));
  expect(await letters.read('reused')).toEqual(before);
  expect(await letters.inputs(before)).not.toContain(null);
});

it('a redrive takes away the letter that it has run, not one that the id has got meanwhile', async () => {
  await answer(await accept('again', [1]), ['runner_crashed']);
  const first = await letters.read('again');
  await rig.redis.unlink(store.keys.record('again'));
  await answer(await accept('again', [2]), ['run_timeout']);
  const letter = first as NonNullable<typeof first>;
  expect(await letters.noteRedrive(letter, 'redrive_x')).toBe(false);
  expect(await letters.redriven(letter)).toBe(false);
  const second = (await letters.read('again')) as NonNullable<typeof first>;
  expect(second).toMatchObject({ redrivenAs: null, errors: [{ error: { code: 'run_timeout' } }] });
  expect(await letters.noteRedrive(second, 'redrive_y')).toBe(true);
  expect(await letters.redriven(second)).toBe(true);
  expect(await listed()).toEqual([]);
});
