import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DuplicateIds } from './duplicate-ids.js';
import { hashId } from './id-hash.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'remuda-ids-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** More than 4,096 a bucket go to files. */
const MANY = 400_000;

async function duplicatesAmong(count: number, idOf: (row: number) => string) {
  const ids = new DuplicateIds(join(folder, 'ids'));
  try {
    for (let row = 0; row < count; row++) await ids.add(idOf(row), row);
    return await ids.find();
  } finally {
    await ids.close();
  }
}

describe('ids that stand twice', () => {
  it.each([1_000, MANY])('are not found where each of %i rows has its own', async (rows) => {
    expect(await duplicatesAmong(rows, (row) => row.toString(36))).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
  });

  it.each([1_000, MANY])('are told with both rows, the first of them first, among %i', async (rows) => {
    const same = new Map([
      [rows - 1, 3],
      [rows - 200, 700],
    ]);
    expect(await duplicatesAmong(rows, (row) => `id-${same.get(row) ?? row}`)).toEqual([
      { row: rows - 200, first: 700 },
      { row: rows - 1, first: 3 },
    ]);
  });

  it('are named up to twenty, where every row has the same', async () => {
    const found = await duplicatesAmong(500, () => 'x');
    expect(found).toEqual(Array.from({ length: 20 }, (_, i) => ({ row: i + 1, first: 0 })));
  });
});

it('texts that differ in a zero, a surrogate or their end have hashes of their own', () => {
  const texts = [
    '',
    '\0',
    '\0\0',
    'a',
    'a\0',
    '\0a',
    'aaaaaaaa',
    'aaaaaaaaa',
    'aaaaaaaa\0',
    '\ud83d\ude00',
    '\ud83d',
    'Zoë',
    'Zoe\u0308',
  ];
  const hashes = texts.map((text) => {
    const bytes = Buffer.alloc(16);
    hashId(text, bytes, 0);
    return bytes.toString('hex', 0, 10);
  });
  expect(new Set(hashes).size).toBe(texts.length);
});

it('a bit of the text changes about half of the bits of its hash', () => {
  let changed = 0;
  let pairs = 0;
  const [one, other] = [Buffer.alloc(16), Buffer.alloc(16)];
  for (let i = 0; i < 200; i++) {
    const text = `customer-${i * 7_919}`;
    hashId(text, one, 0);
    for (let place = 0; place < text.length; place++) {
      const code = text.charCodeAt(place) ^ (1 << (i % 7));
      hashId(text.slice(0, place) + String.fromCharCode(code) + text.slice(place + 1), other, 0);
      for (let byte = 0; byte < 10; byte++) {
        changed += ((one[byte] as number) ^ (other[byte] as number)).toString(2).replaceAll('0', '').length;
      }
      pairs++;
    }
  }
  expect(changed / pairs / 80).toBeGreaterThan(0.48);
  expect(changed / pairs / 80).toBeLessThan(0.52);
});
