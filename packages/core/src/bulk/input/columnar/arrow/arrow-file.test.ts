import { readFile, writeFile } from 'node:fs/promises';
import {
  Binary,
  Bool,
  CompressionType,
  compressionRegistry,
  type DataType,
  DateDay,
  Decimal,
  Dictionary,
  Field,
  FixedSizeList,
  Float16,
  Float32,
  Float64,
  Int8,
  Int32,
  Int64,
  IntervalYearMonth,
  LargeUtf8,
  List,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  TimestampMillisecond,
  Uint16,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openZstd } from '../../../output/compress.js';
import { LIMITS, open, pieces, plain, readerOf, readRows, scratch } from '../columnar.fixture.js';
import { unpackLz4 } from './lz4-frame.js';

let files: Awaited<ReturnType<typeof scratch>>;
beforeAll(async () => {
  files = await scratch();
  const { compress } = await openZstd();
  compressionRegistry.set(CompressionType.ZSTD, { encode: (bytes) => compress(Buffer.from(bytes), 3) });
  compressionRegistry.set(CompressionType.LZ4_FRAME, { encode: storedLz4 });
});
afterAll(() => files.remove());

type Columns = Record<string, Vector>;
interface How {
  stream?: boolean;
  compressionType?: CompressionType;
}

/** Each a record batch. */
async function write(name: string, batches: Columns[], how: How = {}): Promise<string> {
  const writer = how.stream ? new RecordBatchStreamWriter(how) : new RecordBatchFileWriter(how);
  const fields = Object.entries(batches[0] as Columns).map(([key, { type }]) => new Field(key, type, true));
  const schema = new Schema(fields);
  for (const batch of batches) {
    const children = Object.values(batch).map((vector) => vector.data[0] as never);
    const length = (Object.values(batch)[0] as Vector).length;
    writer.write(new RecordBatch(schema, makeData({ type: new Struct(fields), length, children })));
  }
  writer.finish();
  const path = files.path(name);
  await writeFile(path, await writer.toUint8Array());
  return path;
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

/** Rows 0 to 2,999 in batches of 1,000. */
const numbered = (): Columns[] =>
  [0, 1_000, 2_000].map((from) => ({
    id: vectorFromArray(range(from, from + 1_000).map(BigInt), new Int64()),
    x: vectorFromArray(
      range(from, from + 1_000).map((i) => (i % 10 === 0 ? null : i * 0.5)),
      new Float32(),
    ),
    name: vectorFromArray(
      range(from, from + 1_000).map((i) => `row ${i}`),
      new Utf8(),
    ),
  }));

describe.each<[string, How]>([
  ['the file format', {}],
  ['the stream format', { stream: true }],
  ['the file format packed by zstd', { compressionType: CompressionType.ZSTD }],
  ['the stream format packed by lz4', { stream: true, compressionType: CompressionType.LZ4_FRAME }],
])('an Arrow file of %s', (label, how) => {
  it('gives every row once, in order, over the seams of its batches', async () => {
    const path = await write(`${label}.arrow`, numbered(), how);
    const input = await open(path, 'arrow');
    expect(input.totalRows).toBe(3_000);
    expect(input.columns).toEqual([
      { name: 'id', type: 'int64' },
      { name: 'x', type: 'float32' },
      { name: 'name', type: 'string' },
    ]);
    const reader = readerOf(input);
    const rows: unknown[][] = [[], [], []];
    for (const piece of await pieces(input, { ...LIMITS, rows: 704, multipleOf: 64 })) {
      const columns = await reader.read(piece, ['name', 'id', 'x']);
      for (const [place, column] of columns.entries()) rows[place]?.push(...plain(column));
    }
    expect(rows[0]).toEqual(range(0, 3_000).map((i) => `row ${i}`));
    expect(rows[1]).toEqual(range(0, 3_000).map(BigInt));
    expect(rows[2]).toEqual(range(0, 3_000).map((i) => (i % 10 === 0 ? null : i * 0.5)));
    await reader.close();
    await input.close();
  });
});

it('counts its bytes up to the end, whatever its batches', async () => {
  const path = await write('bytes.arrow', numbered());
  const input = await open(path, 'arrow');
  const found = await pieces(input);
  expect(input.bytesAt({ row: 1_500 })).toBeGreaterThan(input.bytesAt({ row: 500 }));
  expect(found.at(-1)?.next.row).toBe(3_000);
  expect(input.bytesAt({ row: 3_000 })).toBe(input.totalBytes);
  await input.close();
});

describe('columns of an Arrow file', () => {
  const typed = (values: unknown[], type: DataType): Vector =>
    vectorFromArray(values as never, type as never);

  it('keep their types, with nulls as marks', async () => {
    const float = new Field('item', new Float32(), true);
    const path = await write('types.arrow', [
      {
        truth: typed([true, null, false], new Bool()),
        small: typed([-1, null, 3], new Int8()),
        half: typed([0.5, null, -2], new Float16()),
        double: typed([0.1, null, 2], new Float64()),
        large: typed(['a', null, 'ccc'], new LargeUtf8()),
        raw: typed([Uint8Array.of(1, 2), null, Uint8Array.of()], new Binary()),
        list: typed([[1, 2], null, [3]], new List(float)),
        fixed: typed(
          [
            [1, 2],
            [3, 4],
            [5, 6],
          ],
          new FixedSizeList(2, float),
        ),
        word: typed(['x', null, 'x'], new Dictionary(new Utf8(), new Int32())),
        day: typed([new Date('2024-02-03'), null, new Date('1969-12-31')], new DateDay()),
        at: typed([Date.UTC(2024, 1, 3, 4, 5, 6, 700), null, -1], new TimestampMillisecond()),
        nested: typed([{ a: 1 }, null, { a: 3 }], new Struct([new Field('a', new Uint16(), true)])),
      },
    ]);
    const columns = await readRows(path, 'arrow', [0, 3], null);
    expect(Object.fromEntries(columns.map((column) => [column.name, plain(column)]))).toEqual({
      truth: [1, null, 0],
      small: [-1, null, 3],
      half: [0.5, null, -2],
      double: [0.1, null, 2],
      large: ['a', null, 'ccc'],
      raw: [Uint8Array.of(1, 2), null, Uint8Array.of()],
      list: [[1, 2], null, [3]],
      fixed: [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
      word: ['x', null, 'x'],
      day: ['2024-02-03', null, '1969-12-31'],
      at: ['2024-02-03T04:05:06.7', null, '1969-12-31T23:59:59.999'],
      nested: [{ a: 1 }, null, { a: 3 }],
    });
    const types = columns.map(({ name, type }) => `${name} ${type}`);
    expect(types).toContain('half float32');
    expect(types).toContain('word string');
  });

  it('that are cut in the middle of a batch begin at their own row', async () => {
    const path = await write('middle.arrow', [
      {
        truth: typed(
          range(0, 100).map((i) => i % 3 === 0),
          new Bool(),
        ),
        list: typed(
          range(0, 100).map((i) => range(0, i % 4)),
          new List(new Field('item', new Float32(), true)),
        ),
        word: typed(
          range(0, 100).map((i) => `w${i % 5}`),
          new Dictionary(new Utf8(), new Int32()),
        ),
      },
    ]);
    const [truth, list, word] = await readRows(path, 'arrow', [13, 90], ['truth', 'list', 'word']);
    expect(plain(truth)).toEqual(range(13, 90).map((i) => (i % 3 === 0 ? 1 : 0)));
    expect(plain(list)).toEqual(range(13, 90).map((i) => range(0, i % 4)));
    expect(plain(word)).toEqual(range(13, 90).map((i) => `w${i % 5}`));
  });

  it('of decimals are texts with all their digits', async () => {
    const type = new Decimal(2, 20, 128);
    const words = Uint32Array.of(12_345, 0, 0, 0, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff);
    const data = makeData({ type, length: 2, data: words });
    const path = await write('decimals.arrow', [{ d: new Vector([data]) }]);
    const [column] = await readRows(path, 'arrow', [0, 2], ['d']);
    expect(plain(column)).toEqual(['123.45', '-0.01']);
  });

  it('of a type that cannot be read are refused where they are wanted, and passed over elsewhere', async () => {
    const path = await write('interval.arrow', [
      {
        pause: typed([Int32Array.of(1), Int32Array.of(2)], new IntervalYearMonth()),
        x: typed([1, 2], new Float32()),
      },
    ]);
    expect(plain((await readRows(path, 'arrow', [0, 2], ['x']))[0])).toEqual([1, 2]);
    expect((await readRows(path, 'arrow', [0, 2], null)).map(({ name }) => name)).toEqual(['x']);
    await expect(readRows(path, 'arrow', [0, 2], ['pause'])).rejects.toMatchObject({
      code: 'invalid_file',
      message: expect.stringContaining('column "pause" is of type interval'),
    });
  });
});

describe('a damaged Arrow file', () => {
  const broken = async (name: string, how: How, change: (bytes: Buffer) => Uint8Array): Promise<string> => {
    const path = await write(name, numbered(), how);
    await writeFile(path, change(await readFile(path)));
    return path;
  };

  it.each<[string, How, (bytes: Buffer) => Uint8Array, RegExp]>([
    [
      'footer cut off',
      {},
      (bytes) => bytes.subarray(0, bytes.length - 50),
      /footer is cut off: the file ends at byte \d+/,
    ],
    [
      'length of its footer wrong',
      {},
      (bytes) => patched(bytes, bytes.length - 10, 0x7fffffff),
      /footer is said to be \d+ bytes/,
    ],
    [
      'stream cut off in a body',
      { stream: true },
      (bytes) => bytes.subarray(0, bytes.length - 5_000),
      /is cut off: the message at byte \d+ has a body up to byte \d+, and the file ends at byte \d+/,
    ],
    [
      'first bytes those of another format',
      {},
      () => Buffer.from('id,x\n1,2\n3,4\n5,6\n7,8\n'),
      /is no Arrow IPC: it begins with "id,x/,
    ],
    ['version that of Feather 1', {}, () => Buffer.from('FEA1....FEA1'), /Feather version 1/],
    ['content missing', {}, () => Buffer.alloc(0), /is empty/],
  ])('with its %s is refused when it is opened', async (name, how, change, message) => {
    const path = await broken(`${name}.arrow`, how, change);
    await expect(open(path, 'arrow')).rejects.toMatchObject({
      code: 'invalid_file',
      message: expect.stringMatching(message),
    });
  });

  it('with a buffer that does not unpack names its byte, and gives the other columns', async () => {
    const path = await write('packed.arrow', numbered(), { compressionType: CompressionType.ZSTD });
    const bytes = await readFile(path);
    const magic = bytes.indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]));
    await writeFile(path, patched(bytes, magic, 0));
    await expect(readRows(path, 'arrow', [0, 10], ['id'])).rejects.toMatchObject({
      code: 'invalid_file',
      message: expect.stringMatching(/buffer at byte \d+ is damaged: it does not unpack/),
      details: expect.objectContaining({ byte: expect.any(Number) }),
    });
    expect(plain((await readRows(path, 'arrow', [0, 2], ['name']))[0])).toEqual(['row 0', 'row 1']);
  });
});

it('an Arrow file with any bytes changed is read whole or refused as damaged', async () => {
  for (const stream of [false, true]) {
    const path = await write('changed.arrow', numbered(), { stream });
    const bytes = await readFile(path);
    let seed = 1;
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return (seed >>> 8) % below;
    };
    for (let round = 0; round < 60; round++) {
      const copy = Buffer.from(bytes);
      // Half of them where the descriptions lie.
      const part = round % 2 === 0 ? copy.length : 1_500;
      for (let i = 0; i < 4; i++) copy[copy.length - 1 - random(part)] = random(256);
      await writeFile(path, copy);
      const code = await readRows(path, 'arrow', [0, 1], null).then(
        () => 'read',
        (error: { code?: string }) => error.code,
      );
      expect(['read', 'invalid_file']).toContain(code);
    }
  }
});

describe('an LZ4 frame', () => {
  // Written by the reference implementation.
  const packed = Buffer.from('BCJNGGBAgh0AAAA/YWJjAwAL8AUtdGhlIGVuZCBpcyBub3QgbmVhcgAAAAA=', 'base64');
  const text = `${'abc'.repeat(11)}-the end is not near`;

  it('unpacks to what was packed, matches that reach into themselves too', () => {
    expect(Buffer.from(unpackLz4(packed, text.length)).toString()).toBe(text);
  });

  it('that is cut off or reaches before its beginning is refused', () => {
    expect(() => unpackLz4(packed.subarray(0, 30), text.length)).toThrow();
    expect(() => unpackLz4(packed, text.length - 1)).toThrow();
    expect(() => unpackLz4(patched(packed, 15, 0x0fff0163), text.length)).toThrow();
  });
});

/** A frame of one block that is not packed. */
function storedLz4(bytes: Uint8Array): Uint8Array {
  const frame = Buffer.alloc(11 + bytes.length + 4);
  frame.set([0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73]);
  frame.writeUInt32LE((bytes.length | 0x80000000) >>> 0, 7);
  frame.set(bytes, 11);
  return frame;
}

function patched(bytes: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeInt32LE(value, at);
  return copy;
}
