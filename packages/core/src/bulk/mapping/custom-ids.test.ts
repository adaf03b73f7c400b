import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { duplicateIdError, findDuplicateIds, idsOfColumn } from './custom-ids.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'remuda-id-test-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** In blocks of 1,000. */
function* blocks(ids: readonly (string | null)[]): Generator<(string | null)[]> {
  for (let from = 0; from < ids.length; from += 1_000) yield ids.slice(from, from + 1_000);
}

const unique = (count: number): string[] => Array.from({ length: count }, (_, i) => `id-${i}`);

describe.each([
  ['in memory', 500_000],
  ['in bucket files', 700],
])('duplicate ids that are looked for %s', (_, inMemory) => {
  const find = (
    ids: (string | null)[],
    more: { most?: number; idOf?(row: number): Promise<string | null> } = {},
  ) =>
    findDuplicateIds({ ids: blocks(ids), idOf: async (row) => ids[row] ?? null, folder, inMemory, ...more });

  it('are not there where every row has its own', async () => {
    expect(await find(unique(5_000))).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
  });

  it('are told with both of their rows', async () => {
    const ids = unique(5_000);
    ids[4_321] = ids[17] as string;
    expect(await find(ids)).toEqual([{ id: 'id-17', rows: [17, 4_321] }]);
  });

  it('are as many as are asked for', async () => {
    const ids = [...unique(2_000), ...unique(2_000)];
    const found = await find(ids, { most: 5 });
    expect(found).toHaveLength(5);
    for (const { rows } of found) expect(rows[1]).toBe(rows[0] + 2_000);
  });

  it('are none of those that rows do not have', async () => {
    expect(await find([...unique(1_500), null, null, null])).toEqual([]);
  });

  it('are only those that are the same when they are read again', async () => {
    const ids = [...unique(1_000), 'id-5'];
    expect(await find(ids, { idOf: async (row) => `${ids[row]} of row ${row}` })).toEqual([]);
  });
});

it('an id that occurs in no two rows is found in none of a hundred thousand short ones', async () => {
  const ids = Array.from({ length: 100_000 }, (_, i) => i.toString(36));
  expect(await findDuplicateIds({ ids: blocks(ids) })).toEqual([]);
});

it('the error names both rows and the id', () => {
  expect(duplicateIdError({ id: 'a"b', rows: [3, 9] })).toMatchObject({
    code: 'duplicate_custom_id',
    message: expect.stringContaining('rows 3 and 9 (from 0) have the same custom_id "a\\"b"'),
    details: { custom_id: 'a"b', rows: [3, 9] },
  });
});

it('ids are texts, whatever column they come from', () => {
  const int64 = { name: 'id', type: 'int64', values: BigInt64Array.of(9_007_199_254_740_993n, 2n) } as const;
  expect(idsOfColumn({ ...int64, nulls: Uint8Array.of(0, 1) })).toEqual(['9007199254740993', null]);
  expect(idsOfColumn({ name: 'id', type: 'string', values: ['a', null] })).toEqual(['a', null]);
});
