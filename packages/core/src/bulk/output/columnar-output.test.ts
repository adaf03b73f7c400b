/** Parquet and Arrow outputs, read back by those who did not write them. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { joinBytesElements } from '@remuda/schemas';
import { tableFromIPC } from 'apache-arrow';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ChunkResult } from '../chunk.js';
import type { Column } from '../columns.js';
import { createEncoder, type EncoderOptions } from './output-encoder.js';
import { bigOutput, failure, int64, joined, output, resultOf } from './results.fixture.js';

let folder: string;
let files = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'remuda-columnar-'));
});
afterAll(() => rm(folder, { recursive: true }));

type Row = Record<string, unknown>;

/** @param query of the file, as "file" */
async function duck(bytes: Uint8Array, query = 'SELECT * FROM file'): Promise<Row[]> {
  const path = join(folder, `${files++}.parquet`);
  await writeFile(path, bytes);
  const db = await (await DuckDBInstance.create()).connect();
  try {
    const reader = await db.runAndReadAll(query.replace('file', `read_parquet('${path}')`));
    return reader.getRowObjectsJS() as Row[];
  } finally {
    db.closeSync();
  }
}

async function hyparquet(bytes: Uint8Array): Promise<Row[]> {
  const copy = new Uint8Array(bytes).buffer;
  return (await parquetReadObjects({ file: copy })) as Row[];
}

function arrow(bytes: Uint8Array): Row[] {
  return tableFromIPC(bytes)
    .toArray()
    .map((row) => plain(row.toJSON()) as Row);
}

/** Vectors of Arrow as lists. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array || value === null || typeof value !== 'object') return value;
  if (Symbol.iterator in value) return [...(value as Iterable<unknown>)].map(plain);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
}

async function file(options: Partial<EncoderOptions>, results: readonly ChunkResult[]): Promise<Buffer> {
  return joined(
    await createEncoder({
      format: 'parquet',
      compression: 'none',
      ids: false,
      outputs: [],
      keep: [],
      ...options,
    }),
    results,
  );
}

const OUTPUTS: EncoderOptions['outputs'] = [
  { name: 'prob', datatype: 'FP32', rowShape: [1] },
  { name: 'grid', datatype: 'INT32', rowShape: [2, null] },
  { name: 'tags', datatype: 'BYTES', rowShape: [null] },
  { name: 'wide', datatype: 'INT64', rowShape: [] },
];

const MIXED: ChunkResult[] = [
  resultOf(3, {
    ids: ['a', null, 'c'],
    outputs: [
      output('prob', 'FP32', [1], [0.5, 0, Number.NaN]),
      output('grid', 'INT32', [2, 1], [1, 2, 0, 0, 5, 6]),
      {
        name: 'tags',
        datatype: 'BYTES',
        shape: null,
        shapes: [[2], null, [0]],
        bytes: joinBytesElements([Buffer.from('é'), Buffer.from('')]),
      },
      bigOutput('wide', [], [2n ** 60n, 0n, -1n]),
    ],
    failures: [failure(1)],
  }),
  // Not one row of it has an answer.
  resultOf(2, { firstRow: 3, ids: ['d', 'e'], failures: [failure(0), failure(1)] }),
  resultOf(1, {
    firstRow: 5,
    ids: ['f'],
    outputs: [
      output('prob', 'FP32', [1], [1]),
      output('grid', 'INT32', [2, 3], [1, 2, 3, 4, 5, 6]),
      { name: 'tags', datatype: 'BYTES', shape: [1], bytes: joinBytesElements([Buffer.from('z')]) },
      bigOutput('wide', [], [7n]),
    ],
  }),
];

const NOTHING = { prob: null, grid: null, tags: null, wide: null };
const FAILED = { ...NOTHING, error_code: 'invalid_row' };
const GOOD = { error_code: null, error_message: null };
const EXPECTED = [
  { row: 0n, custom_id: 'a', prob: 0.5, grid: [[1], [2]], tags: ['é', ''], wide: 2n ** 60n, ...GOOD },
  { row: 1n, custom_id: null, ...FAILED, error_message: failure(1).error.message },
  { row: 2n, custom_id: 'c', prob: Number.NaN, grid: [[5], [6]], tags: [], wide: -1n, ...GOOD },
  { row: 3n, custom_id: 'd', ...FAILED, error_message: failure(0).error.message },
  { row: 4n, custom_id: 'e', ...FAILED, error_message: failure(1).error.message },
  {
    row: 5n,
    custom_id: 'f',
    prob: 1,
    grid: [
      [1, 2, 3],
      [4, 5, 6],
    ],
    tags: ['z'],
    wide: 7n,
    ...GOOD,
  },
];

describe('a Parquet output', () => {
  it('has tensors as lists, scalars as numbers, and nothing where a row has failed', async () => {
    const bytes = await file({ ids: true, outputs: OUTPUTS }, MIXED);
    expect(await duck(bytes)).toEqual(EXPECTED);
    expect(await hyparquet(bytes)).toEqual(EXPECTED);
    const described = await duck(bytes, 'DESCRIBE SELECT * FROM file');
    expect(described.map(({ column_name, column_type }) => `${column_name} ${column_type}`)).toEqual([
      'row BIGINT',
      'custom_id VARCHAR',
      'prob FLOAT',
      'grid INTEGER[][]',
      'tags VARCHAR[]',
      'wide BIGINT',
      'error_code VARCHAR',
      'error_message VARCHAR',
    ]);
  });

  it('has its schema where no row has come, or none has an answer', async () => {
    const empty = await file({ outputs: OUTPUTS, keep: [{ name: 'k', type: 'list<float32>' }] }, []);
    expect(await duck(empty)).toEqual([]);
    const types = await duck(empty, 'SELECT column_type AS t FROM (DESCRIBE SELECT * FROM file)');
    expect(types.map(({ t }) => t)).toEqual(
      'BIGINT FLOAT[] FLOAT INTEGER[][] VARCHAR[] BIGINT VARCHAR VARCHAR'.split(' '),
    );
    expect(await hyparquet(empty)).toEqual([]);
    const failed = await file({ outputs: OUTPUTS }, [resultOf(1, { failures: [failure(0)] })]);
    expect(await duck(failed, 'SELECT typeof(grid) AS t, prob FROM file')).toEqual([
      { t: 'INTEGER[][]', prob: null },
    ]);
  });

  it('keeps columns of every type, with their nulls', async () => {
    const numbers = [
      ['bool', Uint8Array, [1, 0], true],
      ['int8', Int8Array, [-128, 0], -128],
      ['int16', Int16Array, [-32_768, 0], -32_768],
      ['int32', Int32Array, [-5, 0], -5],
      ['uint8', Uint8Array, [255, 0], 255],
      ['uint16', Uint16Array, [65_535, 0], 65_535],
      ['uint32', Uint32Array, [4_294_967_295, 0], 4_294_967_295],
      ['float32', Float32Array, [0.5, 0], 0.5],
      ['float64', Float64Array, [0.1, 0], 0.1],
    ] as const;
    const nulls = Uint8Array.of(0, 1);
    const kept: Column[] = [
      ...numbers.map(
        ([type, array, values]): Column => ({ name: type, type, values: array.from(values), nulls }),
      ),
      { name: 'uint64', type: 'uint64', values: BigUint64Array.of(2n ** 64n - 1n, 0n), nulls },
      int64('int64', [-(2n ** 63n), 0n], [0, 1]),
      { name: 'string', type: 'string', values: ['"ü', null] },
      { name: 'bytes', type: 'bytes', values: [Uint8Array.of(0, 255), null] },
      { name: 'json', type: 'json', values: [{ a: [1] }, null] },
      {
        name: 'list',
        type: 'list',
        // What stands behind a null is not told.
        offsets: Uint32Array.of(0, 2, 3),
        child: { name: '', type: 'float32', values: Float32Array.of(1, 2, 3), nulls: Uint8Array.of(0, 1, 0) },
        nulls,
      },
    ];
    const keep = kept.map(({ name }) => ({ name, type: null }));
    const result = resultOf(2, { kept });
    const expected = {
      ...Object.fromEntries(numbers.map(([type, , , value]) => [type, value])),
      uint64: 2n ** 64n - 1n,
      int64: -(2n ** 63n),
      string: '"ü',
      json: '{"a":[1]}',
      list: [1, null],
    };
    const bytes = await file({ keep }, [result]);
    const missing = Object.fromEntries(keep.map(({ name }) => [name, null]));
    for (const rows of [await duck(bytes), await hyparquet(bytes)]) {
      expect(rows[0]).toMatchObject(expected);
      expect(rows[1]).toMatchObject(missing);
    }
    expect(await duck(bytes, 'SELECT hex(bytes) AS h FROM file')).toEqual([{ h: '00FF' }, { h: null }]);
    const ipc = arrow(await file({ keep, format: 'arrow' }, [result]));
    expect(ipc[0]).toMatchObject({ ...expected, bytes: Uint8Array.of(0, 255) });
    expect(ipc[1]).toMatchObject(missing);
  });

  it('gives a kept column the narrowest type that holds it in all chunks', async () => {
    const chunk = (firstRow: number, values: unknown[]): ChunkResult =>
      resultOf(values.length, { firstRow, kept: [{ name: 'k', type: 'json', values }] });
    const keep = [{ name: 'k', type: null }];
    const kept = async (...results: ChunkResult[]): Promise<unknown[]> =>
      (await duck(await file({ keep }, results))).map(({ k }) => k);
    expect(await kept(chunk(0, [null]), chunk(1, [1, 2]))).toEqual([null, 1n, 2n]);
    expect(await kept(chunk(0, [1]), chunk(1, [2.5]))).toEqual([1, 2.5]);
    expect(await kept(chunk(0, [1, null]), chunk(2, ['x', [true]]))).toEqual(['1', null, 'x', '[true]']);
  });

  it('keeps every digit of whole numbers whose type nothing but their values tells', async () => {
    const chunk = (firstRow: number, values: number[], nulls?: Uint8Array): ChunkResult =>
      resultOf(values.length, {
        firstRow,
        kept: [{ name: 'k', type: 'float64', values: Float64Array.from(values), ...(nulls && { nulls }) }],
      });
    const large = resultOf(1, { firstRow: 4, kept: [int64('k', [2n ** 53n + 1n])] });
    const kept = async (type: string | null, ...results: ChunkResult[]): Promise<unknown[]> =>
      (await duck(await file({ keep: [{ name: 'k', type }] }, results))).map(({ k }) => k);
    const ids = chunk(0, [7, -1, Number.MIN_SAFE_INTEGER, 0], Uint8Array.of(0, 0, 0, 1));
    expect(await kept(null, ids, large)).toEqual([7n, -1n, -(2n ** 53n) + 1n, null, 2n ** 53n + 1n]);
    expect(await kept(null, ids, chunk(4, [0.5]))).toEqual([7, -1, Number.MIN_SAFE_INTEGER, null, 0.5]);
    expect(await kept('float64', ids)).toEqual([7, -1, Number.MIN_SAFE_INTEGER, null]);
  });

  it('holds BYTES that are no UTF-8 as bytes', async () => {
    const bytes = joinBytesElements([Uint8Array.of(255), Buffer.from('a')]);
    const outputs: EncoderOptions['outputs'] = [{ name: 'b', datatype: 'BYTES', rowShape: [] }];
    const written = await file({ outputs }, [
      resultOf(2, { outputs: [{ name: 'b', datatype: 'BYTES', shape: [], bytes }] }),
    ]);
    expect(await duck(written, 'SELECT typeof(b) AS t, hex(b) AS h FROM file')).toEqual([
      { t: 'BLOB', h: 'FF' },
      { t: 'BLOB', h: '61' },
    ]);
  });

  it('moves its own columns out of the way of names that are taken', async () => {
    const outputs: EncoderOptions['outputs'] = [{ name: 'row', datatype: 'FP32', rowShape: [] }];
    const result = resultOf(1, {
      kept: [int64('row', [9n])],
      outputs: [output('row', 'FP32', [], [0.5])],
    });
    const written = await file({ outputs, keep: [{ name: 'row', type: null }] }, [result]);
    expect(await hyparquet(written)).toEqual([{ __row: 0n, row: 9n, _row: 0.5, ...GOOD }]);
  });

  it('refuses answers that are not what the signature promised', async () => {
    const result = resultOf(1, { outputs: [output('prob', 'FP32', [2], [0, 1])] });
    await expect(file({ outputs: OUTPUTS.slice(0, 1) }, [result])).rejects.toMatchObject({
      code: 'output_mismatch',
      message: expect.stringContaining('"prob" of rows 0 to 0 is [2], not the FP32 [1]'),
    });
  });

  it('takes lists of another length than the model declares', async () => {
    const declared: EncoderOptions['outputs'] = [{ name: 'y', datatype: 'FP32', rowShape: [3] }];
    const result = resultOf(1, { outputs: [output('y', 'FP32', [2], [0, 1])] });
    expect(await hyparquet(await file({ outputs: declared }, [result]))).toMatchObject([{ y: [0, 1] }]);
    await expect(file({ outputs: declared, format: 'csv' }, [result])).rejects.toMatchObject({
      code: 'output_mismatch',
    });
  });

  it('puts rows of many small chunks into few row groups, of half a million numbers each its bounds', async () => {
    const results = Array.from({ length: 150 }, (_, chunk) => many(chunk * 1_000, 1_000));
    const bytes = await file({ outputs: MANY }, results);
    const path = join(folder, `${files}.parquet`);
    const groups = await duck(
      bytes,
      `SELECT row_group_num_rows AS n, stats_min_value AS low, stats_max_value AS high FROM (SELECT count(*) FROM file), parquet_metadata('${path}') WHERE path_in_schema = 'row'`,
    );
    expect(groups).toEqual([
      { n: 131_072n, low: '0', high: '131071' },
      { n: 18_928n, low: '131072', high: '149999' },
    ]);
    const [sums] = await duck(
      bytes,
      'SELECT count(*) AS n, sum(list_sum(l)) AS l, sum(row) AS r, count(error_code) AS e FROM file',
    );
    expect(sums).toMatchObject({ n: 150_000n, l: 150_000 * 6, e: 0n });
  });
});

const MANY: EncoderOptions['outputs'] = [{ name: 'l', datatype: 'FP32', rowShape: [3] }];

function many(firstRow: number, rows: number): ChunkResult {
  const elements = Array.from({ length: rows * 3 }, (_, i) => (i % 3) + 1);
  return resultOf(rows, { firstRow, outputs: [output('l', 'FP32', [3], elements)] });
}

describe('an Arrow output', () => {
  it('holds the same as a Parquet one', async () => {
    const bytes = await file({ format: 'arrow', ids: true, outputs: OUTPUTS }, MIXED);
    expect(arrow(bytes)).toEqual(EXPECTED);
  });

  it('has its schema where no row has come', async () => {
    const table = tableFromIPC(await file({ format: 'arrow', outputs: OUTPUTS }, []));
    expect(table.numRows).toBe(0);
    expect(table.schema.fields.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'row Int64',
      'prob Float32',
      'grid List<List<Int32>>',
      'tags List<Utf8>',
      'wide Int64',
      'error_code Utf8',
      'error_message Utf8',
    ]);
  });

  it('is several record batches where there are many rows', async () => {
    const table = tableFromIPC(await file({ format: 'arrow', outputs: MANY }, [many(0, 70_000)]));
    expect(table.batches.map(({ numRows }) => numRows)).toEqual([65_536, 4_464]);
    expect(plain(table.get(69_999)?.toJSON())).toMatchObject({ row: 69_999n, l: [1, 2, 3] });
  });
});

it('is refused with a compression around it', async () => {
  for (const format of ['parquet', 'arrow'] as const)
    await expect(file({ format, compression: 'zstd' }, [])).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('.zst'),
    });
});
