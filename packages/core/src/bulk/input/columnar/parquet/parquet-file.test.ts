import { readFile, truncate, utimes, writeFile } from 'node:fs/promises';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open, pieces, plain, readerOf, readRows, scratch, writeParquet } from '../columnar.fixture.js';

const ROWS = 10_000;
let files: Awaited<ReturnType<typeof scratch>>;
let table: string;

beforeAll(async () => {
  files = await scratch();
  table = files.path('table.parquet');
  await writeParquet(
    table,
    `SELECT i AS id, (i * 0.5)::FLOAT AS f0, (i % 7)::TINYINT AS f1 FROM range(${ROWS}) t(i)`,
  );
});
afterAll(() => files.remove());

describe('pieces of a Parquet file', () => {
  it('hold every row once, in order, in multiples of the batch', async () => {
    const input = await open(table, 'parquet');
    expect(input.totalRows).toBe(ROWS);
    const found = await pieces(input);
    expect(found.slice(0, -1).every(({ rows }) => rows === 1_000)).toBe(true);
    expect(found.map(({ firstRow }) => firstRow)).toEqual(Array.from({ length: 10 }, (_, i) => i * 1_000));
    const reader = readerOf(input);
    const ids: unknown[] = [];
    for (const piece of found) ids.push(...plain((await reader.read(piece, ['id']))[0]));
    expect(ids).toEqual(Array.from({ length: ROWS }, (_, i) => BigInt(i)));
    expect(input.bytesAt({ row: ROWS })).toBe(input.totalBytes);
    expect(found.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(input.totalBytes);
    await reader.close();
    await input.close();
  });

  it('are no larger than the bytes that are allowed, but never less than a batch', async () => {
    const input = await open(table, 'parquet');
    const [small] = await pieces(input, { rows: 5_000, multipleOf: 64, bytes: 1 });
    expect(small?.rows).toBe(64);
    const [middle] = await pieces(input, { rows: 5_000, multipleOf: 64, bytes: 13 * 640 });
    expect(middle?.rows).toBeGreaterThan(64);
    expect(middle?.rows).toBeLessThan(5_000);
    await input.close();
  });

  it('can be read in any order, again and again', async () => {
    const input = await open(table, 'parquet');
    const found = await pieces(input);
    const reader = readerOf(input);
    for (const place of [3, 0, 9, 4, 5, 5, 8, 1]) {
      const [id, f0] = await reader.read(found[place] as never, ['id', 'f0']);
      expect(plain(id)[999]).toBe(BigInt(place * 1_000 + 999));
      expect(f0).toMatchObject({ type: 'float32' });
      expect(plain(f0)[2]).toBe((place * 1_000 + 2) * 0.5);
    }
    await reader.close();
    await input.close();
  });

  it('are read at the same time from one reader without mixing', async () => {
    const input = await open(table, 'parquet');
    const found = await pieces(input);
    const reader = readerOf(input);
    const firsts = await Promise.all(
      found.map(async (piece) => plain((await reader.read(piece, ['id']))[0])[0]),
    );
    expect(firsts).toEqual(found.map(({ firstRow }) => BigInt(firstRow)));
    await reader.close();
    await input.close();
  });

  it('come as bytes with the wanted columns for a worker that cannot read the file', async () => {
    const input = await open(table, 'parquet');
    const [, second] = await pieces(input);
    const payload = await input.payloadOf(second as never, ['f1', 'id']);
    const reader = readerOf(input);
    const travelled = { ...(second as object), source: null, range: { kind: 'payload' } } as never;
    const [f1, id] = await reader.read(travelled, ['f1', 'id'], payload);
    expect(f1).toMatchObject({ name: 'f1', type: 'int8' });
    expect(plain(f1)[3]).toBe(1_003 % 7);
    expect(plain(id)[0]).toBe(1_000n);
    await input.close();
  });
});

describe('columns of a Parquet file', () => {
  it('keep their types, with nulls as marks', async () => {
    const path = files.path('types.parquet');
    await writeParquet(
      path,
      `SELECT true AS b, 1::UTINYINT AS u8, 70000::UINTEGER AS u32, 1.5::DOUBLE AS d, 'Zoë' AS s, '\\x00\\xFF'::BLOB AS raw,
        [1.5::FLOAT, NULL] AS l, [[1], [2, 3]] AS ll, ['a', 'b'] AS ls, 12.30::DECIMAL(10,2) AS dec,
        DATE '2024-02-03' AS day, TIMESTAMP '2024-02-03 04:05:06.5' AS at, TIMESTAMPTZ '2024-02-03 04:05:06+00' AS moment,
        {a: 1, b: [true]} AS o
       UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL`,
    );
    const input = await open(path, 'parquet');
    expect(Object.fromEntries(input.columns.map(({ name, type }) => [name, type]))).toEqual({
      b: 'bool',
      u8: 'uint8',
      u32: 'uint32',
      d: 'float64',
      s: 'string',
      raw: 'bytes',
      l: 'list<float32>',
      ll: 'list<list<int32>>',
      ls: 'list<string>',
      dec: 'decimal(10,2)',
      day: 'date',
      at: 'timestamp',
      moment: 'timestamp with time zone',
      o: 'struct',
    });
    await input.close();
    const columns = await readRows(path, 'parquet', [0, 2], null);
    const rows = Object.fromEntries(columns.map((column) => [column.name, plain(column)]));
    expect(rows).toEqual({
      b: [1, null],
      u8: [1, null],
      u32: [70_000, null],
      d: [1.5, null],
      s: ['Zoë', null],
      raw: [Uint8Array.of(0, 255), null],
      l: [[1.5, null], null],
      ll: [[[1], [2, 3]], null],
      ls: [['a', 'b'], null],
      dec: ['12.30', null],
      day: ['2024-02-03', null],
      at: ['2024-02-03T04:05:06.5', null],
      moment: ['2024-02-03T04:05:06Z', null],
      o: [{ a: 1, b: [true] }, null],
    });
  });

  it('of lists that differ in length keep their rows over the seams of vectors and row groups', async () => {
    const path = files.path('lists.parquet');
    await writeParquet(path, 'SELECT range(i % 5)::FLOAT[] AS l FROM range(6000) t(i)');
    const [lists] = await readRows(path, 'parquet', [1_900, 4_300], ['l']);
    expect(plain(lists)).toEqual(
      Array.from({ length: 2_400 }, (_, i) => Array.from({ length: (1_900 + i) % 5 }, (_, k) => k)),
    );
  });

  it('are found in a file whose name and columns have odd characters, even that of the row number', async () => {
    const path = files.path("odd [1]*'x.parquet");
    const numbers = (factor: number) => Array.from({ length: 5_000 }, (_, i) => i * factor);
    const columnData = ['file_row_number', 'a "b', 'A "B'].map((name, i) => ({ name, data: numbers(i + 1) }));
    await writeFile(path, new Uint8Array(parquetWriteBuffer({ columnData })));
    const columns = await readRows(path, 'parquet', [4_000, 4_002], ['A "B', 'a "b', 'file_row_number']);
    expect(columns.map((column) => Number(plain(column)[1]))).toEqual([12_003, 8_002, 4_001]);
  });

  it('that are wanted and not there are named, with the name that was meant', async () => {
    await expect(readRows(table, 'parquet', [0, 10], ['f3'])).rejects.toMatchObject({
      code: 'invalid_file',
      message: expect.stringMatching(/has no column "f3"; did you mean "f[01]"/),
    });
  });

  it('of a type that cannot be read are refused where they are wanted, and no sooner', async () => {
    const path = files.path('interval.parquet');
    await writeParquet(path, 'SELECT i::FLOAT AS x, INTERVAL 1 DAY AS pause FROM range(3) t(i)');
    const [x] = await readRows(path, 'parquet', [0, 3], ['x']);
    expect(plain(x)).toEqual([0, 1, 2]);
    expect((await readRows(path, 'parquet', [0, 3], null)).map(({ name }) => name)).toEqual(['x']);
    await expect(readRows(path, 'parquet', [0, 3], ['pause'])).rejects.toMatchObject({
      code: 'invalid_file',
      message: expect.stringContaining('column "pause" is of type interval'),
    });
  });
});

describe('a damaged Parquet file', () => {
  const broken = async (name: string, change: (bytes: Buffer) => Uint8Array): Promise<string> => {
    const path = files.path(name);
    await writeFile(path, change(await readFile(table)));
    return path;
  };

  it.each([
    [
      'footer cut off',
      (bytes: Buffer) => bytes.subarray(0, bytes.length - 100),
      /footer is cut off: the file ends at byte \d+/,
    ],
    [
      'footer of a wrong length',
      (bytes: Buffer) => patched(bytes, bytes.length - 8, 0x7fffffff),
      /footer is said to be \d+ bytes long/,
    ],
    ['other magic', (bytes: Buffer) => patched(bytes, 0, 0x0a0d2c61), /is no Parquet file: it begins with/],
    ['nothing in it', () => Buffer.alloc(0), /is empty/],
    [
      'noise for a footer',
      (bytes: Buffer) => noisy(bytes, bytes.length - 200, bytes.length - 8),
      /footer cannot be read/,
    ],
  ])('with its %s is refused when it is opened', async (name, change, message) => {
    const path = await broken(`${name}.parquet`, change);
    await expect(open(path, 'parquet')).rejects.toMatchObject({
      code: 'invalid_file',
      message: expect.stringMatching(message),
    });
  });

  it('with a page that does not unpack names the row group, and gives the rows of the others', async () => {
    const path = files.path('pages.parquet');
    await writeParquet(path, 'SELECT hash(i) AS h, i AS id FROM range(6144) t(i)');
    const bytes = await readFile(path);
    await writeFile(path, noisy(bytes, Math.floor(bytes.length * 0.4), Math.floor(bytes.length * 0.6)));
    await expect(readRows(path, 'parquet', [2_100, 4_000], ['h', 'id'])).rejects.toMatchObject({
      code: 'invalid_file',
      message: expect.stringMatching(
        /rows 2100 to 3999 \(row group 1\) cannot be read: .+ Fetch or write it again/,
      ),
    });
    const [, id] = await readRows(path, 'parquet', [0, 1_000], ['h', 'id']);
    expect(plain(id)[999]).toBe(999n);
  });
});

describe('a source that is another than the coordinator saw', () => {
  it.each([
    ['is gone', async (path: string) => (await import('node:fs/promises')).unlink(path)],
    ['has another size', (path: string) => truncate(path, 500)],
    ['was written again', (path: string) => utimes(path, new Date(), new Date(1_700_000_000_000))],
  ])('since it %s is not read', async (name, change) => {
    const path = files.path(`${name}.parquet`);
    await writeParquet(path, 'SELECT i::FLOAT AS x FROM range(5000) t(i)');
    const input = await open(path, 'parquet');
    const [first, second] = await pieces(input);
    const reader = readerOf(input);
    await reader.read(first as never, ['x']);
    await change(path);
    await expect(reader.read(second as never, ['x'])).rejects.toMatchObject({ code: 'source_unreadable' });
    await expect(input.payloadOf(second as never)).rejects.toMatchObject({ code: 'source_unreadable' });
    await reader.close();
    await input.close();
  });

  it('since it never was there is no file', async () => {
    await expect(open(files.path('none.parquet'), 'parquet')).rejects.toMatchObject({
      code: 'file_not_found',
    });
  });
});

it('closes files beyond those that it keeps open, and reads them again', async () => {
  const other = files.path('other.parquet');
  await writeParquet(other, 'SELECT i AS id FROM range(3000) t(i)');
  const [one, two] = [await open(table, 'parquet'), await open(other, 'parquet')];
  const reader = readerOf(one, { files: 1 });
  const [first] = await pieces(one);
  const [second] = await pieces(two);
  for (let i = 0; i < 3; i++) {
    expect(plain((await reader.read(first as never, ['id']))[0])[5]).toBe(5n);
    expect(plain((await reader.read(second as never, ['id']))[0])[6]).toBe(6n);
  }
  await reader.close();
  await Promise.all([one.close(), two.close()]);
});

function patched(bytes: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeInt32LE(value, at);
  return copy;
}

/** Bytes that look like nothing, the same on each run. */
function noisy(bytes: Buffer, from: number, to: number): Buffer {
  const copy = Buffer.from(bytes);
  for (let i = from; i < to; i++) copy[i] = (i * 2_654_435_761) >>> 24;
  return copy;
}
