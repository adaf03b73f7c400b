import { describe, expect, it } from 'vitest';
import type { ChunkOrder, ChunkResult } from './chunk.js';
import { decodeOrder, decodeResult, encodeOrder, encodeResult } from './chunk-codec.js';
import type { Column } from './columns.js';

const order: ChunkOrder = {
  job: 'batch_a',
  firstRow: 64,
  rows: 3,
  source: { path: '/data/rows.jsonl', bytes: 100, mtimeMs: 5.5 },
  range: { kind: 'bytes', from: 10, to: 90 },
  read: { format: 'jsonl' },
  mapping: { inputs: [], keep: [], idColumn: null },
  choice: {},
};

const columns: Column[] = [
  { name: 'n', type: 'int64', values: BigInt64Array.of(1n, -(2n ** 62n), 3n) },
  { name: 'x', type: 'float32', values: Float32Array.of(1.5, 0, Number.NaN), nulls: Uint8Array.of(0, 1, 0) },
  { name: 'text', type: 'string', values: ['', null, 'ä€😀'], nulls: Uint8Array.of(0, 1, 0) },
  { name: 'raw', type: 'bytes', values: [Uint8Array.of(0, 255), Uint8Array.of(), Uint8Array.of(7)] },
  { name: 'any', type: 'json', values: [{ a: [1] }, null, 'b'] },
  {
    name: 'list',
    type: 'list',
    offsets: Uint32Array.of(0, 2, 2, 3),
    child: { name: 'item', type: 'uint8', values: Uint8Array.of(1, 2, 3) },
  },
];

function plainColumn(column: Column): unknown {
  const nulls = column.nulls && [...column.nulls];
  if (column.type === 'list')
    return { ...column, nulls, offsets: [...column.offsets], child: plainColumn(column.child) };
  const values = Array.from(column.values as unknown[], (one) =>
    one instanceof Uint8Array ? [...one] : one,
  );
  return { ...column, nulls, values };
}

describe('the order of a chunk', () => {
  it('travels with its rows, and without', () => {
    expect(decodeOrder(encodeOrder(order, null))).toEqual({ order, payload: null });
    const payload = Buffer.from('{"a":1}\n');
    const read = decodeOrder(encodeOrder(order, payload));
    expect(read?.order).toEqual(order);
    expect(Buffer.from(read?.payload as Uint8Array)).toEqual(payload);
  });
});

describe('the answers of a chunk', () => {
  const result: ChunkResult = {
    firstRow: 64,
    rows: 3,
    rowNumbers: [4, 17, 900_000_000_000],
    ids: ['a', null, 'c'],
    outputs: [
      {
        name: 'y',
        datatype: 'FP32',
        shape: [2],
        bytes: new Uint8Array(Float32Array.of(1, 2, 0, 0, 5, 6).buffer),
      },
      {
        name: 'text',
        datatype: 'BYTES',
        shape: null,
        shapes: [[1], null, []],
        bytes: Uint8Array.of(1, 0, 0, 0, 65),
      },
    ],
    kept: columns,
    failures: [
      { index: 1, error: { code: 'invalid_row', message: 'no', retryable: false }, input: { a: null } },
    ],
    device: 'cpu',
    workerId: 'w',
    seconds: 0.25,
  };

  it('come back as they were, with every kind of column', () => {
    const read = decodeResult(encodeResult(result));
    expect(read.kept.map(plainColumn)).toEqual(columns.map(plainColumn));
    const plain = (one: ChunkResult) => ({
      ...one,
      kept: [],
      outputs: one.outputs.map((output) => ({ ...output, bytes: [...output.bytes] })),
    });
    expect(plain(read)).toEqual(plain(result));
  });

  it('need neither ids nor numbers', () => {
    const { rowNumbers, ...bare } = { ...result, ids: null, kept: [], failures: [] };
    const read = decodeResult(encodeResult(bare));
    expect(read.ids).toBeNull();
    expect(read.rowNumbers).toBeUndefined();
    expect(read.kept).toEqual([]);
  });
});
