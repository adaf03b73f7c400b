import {
  type Datatype,
  encodeTensor,
  fromHalfBits,
  type ModelSignature,
  type RawTensor,
  type SignatureTensor,
  toHalfBits,
} from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import type { Mapping } from '../chunk.js';
import type { Column, NumericType, NumericValues, RowBlock } from '../columns.js';
import { NUMERIC_ARRAY } from '../numeric-types.js';
import { mapRows } from './map-rows.js';

const tensor = (
  name: string,
  shape: (number | string)[],
  over: Partial<SignatureTensor> = {},
): SignatureTensor => ({
  name,
  datatype: 'FP32',
  shape,
  batch_axis: 0,
  kind: 'tensor',
  ...over,
});
const model = (...inputs: SignatureTensor[]): ModelSignature =>
  ({ model: 'm', digest: 'd', inputs, outputs: [], parameters_schema: null }) as unknown as ModelSignature;

const block = (rows: number, ...columns: Column[]): RowBlock => ({ rows, columns, failures: new Map() });
const numbers = (
  name: string,
  type: NumericType,
  values: readonly (number | bigint)[],
  nulls?: number[],
): Column => {
  const array = new NUMERIC_ARRAY[type](values.length);
  for (const [i, value] of values.entries()) array[i] = value as never;
  return { name, type, values: array as NumericValues, ...(nulls && { nulls: Uint8Array.from(nulls) }) };
};
const json = (name: string, ...values: unknown[]): Column => ({ name, type: 'json', values });
const strings = (name: string, ...values: (string | null)[]): Column => ({ name, type: 'string', values });
const lists = (name: string, type: NumericType, ...rows: (number | bigint)[][]): Column => {
  const offsets = new Uint32Array(rows.length + 1);
  for (const [i, row] of rows.entries()) offsets[i + 1] = (offsets[i] as number) + row.length;
  return { name, type: 'list', offsets, child: numbers('item', type, rows.flat()) };
};
const mapped = (
  input: string,
  columns: string[],
  rowShape: number[],
  more: Partial<Mapping> = {},
): Mapping => ({
  inputs: [{ input, columns, rowShape }],
  keep: [],
  idColumn: null,
  ...more,
});

/** "0-2 [3,2]": the rows of each run, and the shape of its tensor. */
const runsOf = ({ runs }: ReturnType<typeof mapRows>): string[] =>
  runs.map(({ from, rows, tensors }) => `${from}-${from + rows - 1} [${tensors[0]?.shape}]`);
const dataOf = (found: RawTensor | undefined) => found && encodeTensor(found).data;
const messages = ({ failures }: ReturnType<typeof mapRows>): Record<number, string> =>
  Object.fromEntries(
    [...failures].map(([row, { code, message }]) => [row, code === 'invalid_row' ? message : code]),
  );

describe('columns that are stacked', () => {
  it('become one tensor, whatever their number and that of the rows', () => {
    for (const [rows, width] of [
      [1, 1],
      [3, 5],
      [64, 4],
      [257, 30],
      [1_000, 7],
    ] as const) {
      const columns = Array.from({ length: width }, (_, c) =>
        numbers(
          `f${c}`,
          'float32',
          Array.from({ length: rows }, (_, r) => r * 100 + c),
        ),
      );
      const names = columns.map(({ name }) => name);
      const { runs, failures } = mapRows(
        block(rows, ...columns),
        mapped('x', names, [width]),
        model(tensor('x', ['N', width])),
      );
      expect(failures.size).toBe(0);
      expect(runs).toHaveLength(1);
      expect(runs[0]?.tensors[0]).toMatchObject({ name: 'x', datatype: 'FP32', shape: [rows, width] });
      const expected = Array.from(
        { length: rows * width },
        (_, i) => Math.floor(i / width) * 100 + (i % width),
      );
      expect(dataOf(runs[0]?.tensors[0])).toEqual(expected);
    }
  });

  it('leave out rows that have no value, and name row and column', () => {
    const found = mapRows(
      block(
        5,
        numbers('a', 'float32', [1, 2, 3, 4, 5]),
        numbers('b', 'float32', [6, 7, 8, 9, 10], [0, 0, 1, 0, 0]),
      ),
      mapped('x', ['a', 'b'], [2]),
      model(tensor('x', ['N', 2])),
      1_000,
    );
    expect(runsOf(found)).toEqual(['0-1 [2,2]', '3-4 [2,2]']);
    expect(dataOf(found.runs[1]?.tensors[0])).toEqual([4, 9, 5, 10]);
    expect(messages(found)).toEqual({ 2: 'row 1002: column "b": expected a value, received null' });
    expect(found.failures.get(2)?.details).toEqual({ row: 1_002, column: 'b' });
  });

  it('leave out rows that could not be read, without an error of their own', () => {
    const given = { ...block(3, numbers('a', 'float32', [1, 2, 3])), failures: new Map([[0, {} as never]]) };
    const found = mapRows(given, mapped('x', ['a'], [1]), model(tensor('x', ['N', 1])));
    expect(runsOf(found)).toEqual(['1-2 [2,1]']);
    expect(found.failures.size).toBe(0);
  });

  it('that are not there are an error of the job', () => {
    expect(() =>
      mapRows(
        block(1, numbers('f0', 'float32', [1])),
        mapped('x', ['f1'], [1]),
        model(tensor('x', ['N', 1])),
      ),
    ).toThrow(/no column "f1", which input "x" is made of \(there is "f0"\)/);
  });
});

describe('numbers of another type', () => {
  const TYPES: Record<Exclude<Datatype, 'BYTES'>, (number | bigint)[]> = {
    BOOL: [0, 1],
    UINT8: [0, 255],
    UINT16: [0, 65_535],
    UINT32: [0, 4_294_967_295],
    UINT64: [0n, 18_446_744_073_709_551_615n],
    INT8: [-128, 127],
    INT16: [-32_768, 32_767],
    INT32: [-2_147_483_648, 2_147_483_647],
    INT64: [-9_223_372_036_854_775_808n, 9_223_372_036_854_775_807n],
    FP16: [-65_504, 65_504],
    FP32: [-3.4028234663852886e38, 3.4028234663852886e38],
    FP64: [-Number.MAX_VALUE, Number.MAX_VALUE],
  };
  const SOURCES: [NumericType, (number | bigint)[]][] = [
    ['bool', [0, 1]],
    ['uint8', [0, 1, 200, 255]],
    ['int8', [-128, -1, 0, 1, 127]],
    ['int32', [-2_147_483_648, -32_769, -129, -1, 0, 1, 127, 128, 255, 256, 65_505, 65_536, 2_147_483_647]],
    ['uint32', [0, 1, 255, 2_147_483_648, 4_294_967_295]],
    [
      'int64',
      [
        -9_223_372_036_854_775_808n,
        -2_147_483_649n,
        -1n,
        0n,
        1n,
        127n,
        4_294_967_296n,
        9_007_199_254_740_993n,
        9_223_372_036_854_775_807n,
      ],
    ],
    ['uint64', [0n, 1n, 255n, 4_294_967_296n, 9_223_372_036_854_775_808n, 18_446_744_073_709_551_615n]],
    ['float32', [0, 1, -1, 0.5, 300, 65_504, Math.fround(3e38), Number.NaN, Number.POSITIVE_INFINITY]],
    [
      'float64',
      [
        0,
        1,
        -1,
        0.5,
        255,
        256,
        65_520,
        2 ** 53,
        2 ** 63,
        2 ** 64,
        1e39,
        -1e300,
        Number.NaN,
        Number.NEGATIVE_INFINITY,
      ],
    ],
  ];

  /** By arithmetic in whole numbers and doubles, apart from the loops. */
  function fits(value: number | bigint, datatype: Exclude<Datatype, 'BYTES'>): boolean {
    const [low, high] = TYPES[datatype] as [number | bigint, number | bigint];
    if (datatype === 'BOOL') return Number(value) === 0 || Number(value) === 1;
    if (datatype.startsWith('FP')) {
      const number = Number(value);
      const limit = { FP16: 65_520, FP32: 3.4028235677973366e38, FP64: Number.POSITIVE_INFINITY }[
        datatype as 'FP16'
      ];
      return !Number.isFinite(number) || Math.abs(number) < limit;
    }
    return (
      (typeof value === 'bigint' || Number.isInteger(value)) &&
      BigInt(value) >= BigInt(low) &&
      BigInt(value) <= BigInt(high)
    );
  }

  it.each(SOURCES)('from %s arrive whole, or their row fails', (type, values) => {
    for (const datatype of Object.keys(TYPES) as Exclude<Datatype, 'BYTES'>[]) {
      for (const width of [1, 3]) {
        const columns = Array.from({ length: width }, (_, c) =>
          c === 0
            ? numbers('f0', type, values)
            : numbers(
                `f${c}`,
                'uint8',
                values.map(() => 1),
              ),
        );
        const found = mapRows(
          block(values.length, ...columns),
          mapped(
            'x',
            columns.map(({ name }) => name),
            [width],
          ),
          model(tensor('x', ['N', width], { datatype })),
        );
        const good = values.flatMap((value, row) => (fits(value, datatype) ? [row] : []));
        const runRows = found.runs.flatMap(({ from, rows }) =>
          Array.from({ length: rows }, (_, i) => from + i),
        );
        expect({ datatype, rows: runRows }).toEqual({ datatype, rows: good });
        expect(found.failures.size).toBe(values.length - good.length);
        const given = found.runs.flatMap(({ tensors: [x] }) =>
          (dataOf(x) as unknown[]).filter((_, i) => i % width === 0),
        );
        expect(given.map(Number)).toEqual(good.map((row) => rounded(values[row] as number, datatype)));
      }
    }
  });

  const rounded = (value: number | bigint, datatype: Datatype): number => {
    if (datatype === 'FP16') return fromHalfBits(toHalfBits(Number(value)));
    return datatype === 'FP32' ? Math.fround(Number(value)) : Number(value);
  };

  it('say what came and what the datatype takes', () => {
    const signature = model(tensor('x', ['N', 1], { datatype: 'UINT8' }));
    const found = mapRows(
      block(3, numbers('f3', 'float64', [255, 300, 1.5])),
      mapped('x', ['f3'], [1]),
      signature,
      0,
    );
    expect(messages(found)).toEqual({
      1: 'row 1: column "f3": expected a whole number from 0 to 255 (UINT8), received 300',
      2: 'row 2: column "f3": expected a whole number from 0 to 255 (UINT8), received 1.5',
    });
  });

  it('may come as texts, where they are numbers and nothing else', () => {
    const texts = strings('t', '1.5', ' -2e3 ', 'NaN', '', '12px', '0x10', null);
    const found = mapRows(block(7, texts), mapped('x', ['t'], []), model(tensor('x', ['N'])));
    expect(runsOf(found)).toEqual(['0-2 [3]']);
    expect(dataOf(found.runs[0]?.tensors[0])).toEqual([1.5, -2000, 'NaN']);
    expect(messages(found)[4]).toBe(
      'column "t": expected a number up to ±3.4028235e38 (FP32), received "12px"',
    );
    const long = mapRows(
      block(2, strings('t', '9223372036854775807', '9223372036854775808')),
      mapped('x', ['t'], []),
      model(tensor('x', ['N'], { datatype: 'INT64' })),
    );
    expect(dataOf(long.runs[0]?.tensors[0])).toEqual(['9223372036854775807']);
    expect([...long.failures.keys()]).toEqual([1]);
  });

  it('may come as JSON, as the API takes them', () => {
    const values = json('v', 1, 'NaN', true, null, '5', [1], 2 ** 53);
    const found = mapRows(
      block(7, values),
      mapped('x', ['v'], []),
      model(tensor('x', ['N'], { datatype: 'INT64' })),
    );
    expect(found.runs.flatMap(({ from, rows }) => Array.from({ length: rows }, (_, i) => from + i))).toEqual([
      0, 4,
    ]);
    expect(Object.keys(messages(found))).toEqual(['1', '2', '3', '5', '6']);
  });
});

describe('lists', () => {
  it('of the length that is wanted become rows', () => {
    const found = mapRows(
      block(2, lists('e', 'float32', [1, 2, 3], [4, 5, 6])),
      mapped('x', ['e'], [3]),
      model(tensor('x', ['N', 3])),
    );
    expect(runsOf(found)).toEqual(['0-1 [2,3]']);
    expect(dataOf(found.runs[0]?.tensors[0])).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('of another length fail alone, and say which was expected', () => {
    const column = lists('e', 'float32', [1, 2], [3], [4, 5, 6], [], [7, 8]);
    const found = mapRows(block(5, column), mapped('x', ['e'], [2]), model(tensor('x', ['N', 2])), 0);
    expect(runsOf(found)).toEqual(['0-0 [1,2]', '4-4 [1,2]']);
    expect(messages(found)).toEqual({
      1: 'row 1: column "e": expected a list of 2 values, received 1 values',
      2: 'row 2: column "e": expected a list of 2 values, received 3 values',
      3: 'row 3: column "e": expected a list of 2 values, received 0 values',
    });
  });

  it('of lengths of their own come as runs of equal shape', () => {
    const column = lists('ids', 'int64', [1n, 2n], [3n, 4n], [5n], [6n, 7n, 8n], [9n, 10n, 11n]);
    const found = mapRows(
      block(5, column),
      mapped('ids', ['ids'], [-1]),
      model(tensor('ids', ['N', 'seq'], { datatype: 'INT64' })),
    );
    expect(runsOf(found)).toEqual(['0-1 [2,2]', '2-2 [1,1]', '3-4 [2,3]']);
    expect(dataOf(found.runs[2]?.tensors[0])).toEqual([6, 7, 8, 9, 10, 11]);
  });

  it('of axes of one name must agree in a row', () => {
    const signature = model(tensor('ids', ['N', 'seq']), tensor('mask', ['N', 'seq']));
    const mapping: Mapping = {
      inputs: [
        { input: 'ids', columns: ['ids'], rowShape: [-1] },
        { input: 'mask', columns: ['mask'], rowShape: [-1] },
      ],
      keep: [],
      idColumn: null,
    };
    const found = mapRows(
      block(2, lists('ids', 'float32', [1, 2], [3]), lists('mask', 'float32', [1], [1])),
      mapping,
      signature,
    );
    expect(runsOf(found)).toEqual(['1-1 [1,1]']);
    expect(messages(found)[0]).toMatch(/2 values for "mask", as "ids" has \(axis "seq"\), received 1/);
  });

  it('within lists keep their shape, flat ones take the one that is wanted, and ragged ones fail', () => {
    const inner = lists('item', 'float32', [1, 2], [3, 4], [5, 6], [7, 8], [9], [10, 11]);
    const nested: Column = { name: 'm', type: 'list', offsets: Uint32Array.of(0, 2, 4, 6), child: inner };
    const signature = model(tensor('x', ['N', 2, 2]));
    const found = mapRows(block(3, nested), mapped('x', ['m'], [2, 2]), signature);
    expect(runsOf(found)).toEqual(['0-1 [2,2,2]']);
    expect(dataOf(found.runs[0]?.tensors[0])).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(messages(found)[2]).toBe(
      'column "m": expected lists of equal length on each level, received one of 1 and one of 2 values',
    );
    const flat = mapRows(
      block(1, lists('m', 'float32', [1, 2, 3, 4])),
      mapped('x', ['m'], [2, 2]),
      signature,
    );
    expect(runsOf(flat)).toEqual(['0-0 [1,2,2]']);
  });

  it('in JSON are checked element by element', () => {
    const column = json('v', [1, 2], [1, 'two'], [[1], [2]], 7, [3, null], [5, 6]);
    const found = mapRows(block(6, column), mapped('x', ['v'], [2]), model(tensor('x', ['N', 2])));
    expect(runsOf(found)).toEqual(['0-0 [1,2]', '5-5 [1,2]']);
    expect(messages(found)[1]).toMatch(/column "v": expected a number .* received "two" at \[1\]/);
    expect(messages(found)[2]).toMatch(/expected a list of 2 values, received shape \[2, 1\]/);
    expect(messages(found)[3]).toMatch(/expected a list of 2 values, received one value/);
  });

  it('with a null inside fail', () => {
    const column = lists('e', 'float32', [1, 2], [3, 4]) as Extract<Column, { type: 'list' }>;
    const found = mapRows(
      block(2, { ...column, child: { ...column.child, nulls: Uint8Array.of(0, 0, 0, 1) } as Column }),
      mapped('x', ['e'], [2]),
      model(tensor('x', ['N', 2])),
    );
    expect(messages(found)).toEqual({ 1: expect.stringContaining('received null at 1') });
  });
});

describe('rows that do not lie along the first axis of each input', () => {
  it('come one by one, in the shape of the model', () => {
    const state = tensor('state', [2, 'N', 2], { batch_axis: 1 });
    const found = mapRows(
      block(2, lists('s', 'float32', [1, 2, 3, 4], [5, 6, 7, 8])),
      mapped('state', ['s'], [2, 2]),
      model(state),
    );
    expect(runsOf(found)).toEqual(['0-0 [2,1,2]', '1-1 [2,1,2]']);
    const shared = tensor('sr', [], { batch_axis: null, datatype: 'INT64' });
    const rate = mapRows(
      block(2, numbers('sr', 'int32', [8_000, 16_000])),
      mapped('sr', ['sr'], []),
      model(shared),
    );
    expect(runsOf(rate)).toEqual(['0-0 []', '1-1 []']);
    expect(dataOf(rate.runs[1]?.tensors[0])).toEqual([16_000]);
  });
});

describe('texts and files', () => {
  it('become BYTES; what would not arrive unchanged fails', () => {
    const column = strings('t', 'Zoë', 'a\0b', '\ud800', null, '');
    const found = mapRows(
      block(5, column),
      mapped('t', ['t'], []),
      model(tensor('t', ['N'], { datatype: 'BYTES' })),
    );
    expect(runsOf(found)).toEqual(['0-0 [1]', '4-4 [1]']);
    expect(dataOf(found.runs[0]?.tensors[0])).toEqual(['Zoë']);
    expect(messages(found)).toEqual({
      1: expect.stringContaining('text without NUL characters'),
      2: expect.stringContaining('half of a surrogate pair'),
      3: expect.stringContaining('received null'),
    });
  });

  it('are stacked in the order of the columns', () => {
    const found = mapRows(
      block(2, strings('a', 'a0', 'a1'), strings('b', 'b0', 'b1')),
      mapped('t', ['b', 'a'], [2]),
      model(tensor('t', ['N', 2], { datatype: 'BYTES' })),
    );
    expect(dataOf(found.runs[0]?.tensors[0])).toEqual(['b0', 'a0', 'b1', 'a1']);
  });

  it('of images come file by file, from bytes or base64', () => {
    const image = tensor('image', ['N'], { datatype: 'BYTES', kind: 'image' });
    const files: Column = {
      name: 'image',
      type: 'bytes',
      values: [Uint8Array.of(1, 2), new Uint8Array(0), null],
    };
    const found = mapRows(block(3, files), mapped('image', ['image'], []), model(image));
    expect(runsOf(found)).toEqual(['0-0 [1]']);
    expect([...(found.runs[0]?.tensors[0]?.bytes ?? [])]).toEqual([2, 0, 0, 0, 1, 2]);
    expect(messages(found)[1]).toBe('column "image": expected an image file, received 0 bytes');
    const texts = mapRows(
      block(2, strings('image', 'AQI=', 'no base64!')),
      mapped('image', ['image'], []),
      model(image),
    );
    expect([...(texts.runs[0]?.tensors[0]?.bytes ?? [])]).toEqual([2, 0, 0, 0, 1, 2]);
    expect([...texts.failures.keys()]).toEqual([1]);
  });
});

describe('lines that are requests', () => {
  const signature = model(tensor('x', ['N', 2]));
  const none: Mapping = { inputs: [], keep: [], idColumn: 'custom_id' };

  it('go through the checks of the API, each for itself', () => {
    const inputs = json(
      'inputs',
      { x: [1, 2] },
      { x: [1, 2, 3] },
      { y: [1, 2] },
      {
        x: [
          [1, 2],
          [3, 4],
        ],
      },
      { x: { datatype: 'FP32', shape: [1, 2], data: [5, 6] } },
    );
    const found = mapRows(
      block(
        5,
        strings('custom_id', 'a', 'b', 'c', 'd', 'e'),
        inputs,
        json('parameters', null, null, null, null, null),
      ),
      none,
      signature,
      0,
    );
    expect(runsOf(found)).toEqual(['0-0 [1,2]', '4-4 [1,2]']);
    expect(messages(found)).toEqual({
      1: expect.stringMatching(/^row 1: inputs\.x: expected 2 \(axis 1 of \[N, 2\]\), received 3/),
      2: expect.stringMatching(/an unknown input "y"/),
      3: expect.stringMatching(/expected one row a line, received 2 rows/),
    });
  });

  it('take parameters of their own beside those of the job', () => {
    const schema = {
      type: 'object',
      properties: { k: { type: 'number' }, t: { type: 'number' } },
      additionalProperties: false,
    };
    const takes = { ...signature, digest: 'with parameters', parameters_schema: schema } as ModelSignature;
    const given = block(
      3,
      json('inputs', { x: [1, 2] }, { x: [1, 2] }, { x: [1, 2] }),
      json('parameters', { k: 2 }, null, { z: 1 }),
    );
    const found = mapRows(given, { ...none, parameters: { k: 1, t: 3 } }, takes);
    expect(found.runs.map(({ parameters }) => parameters)).toEqual([
      { k: 2, t: 3 },
      { k: 1, t: 3 },
    ]);
    expect([...found.failures.keys()]).toEqual([2]);
  });

  it("of OpenAI's batch files need the model of the job", () => {
    const body = (over: object) => ({ model: 'm', inputs: { x: [1, 2] }, ...over });
    const columns = [
      strings('method', 'POST', 'POST', 'GET', 'POST'),
      strings(
        'url',
        '/v1/inference-requests',
        '/v1/inference-requests',
        '/v1/inference-requests',
        '/v1/chat/completions',
      ),
      json('body', body({}), body({ model: 'other' }), body({}), body({})),
    ];
    const found = mapRows(block(4, ...columns), none, signature);
    expect(runsOf(found)).toEqual(['0-0 [1,2]']);
    expect(messages(found)).toEqual({
      1: expect.stringMatching(/body\.model: expected m, the model of the job, received other/),
      2: expect.stringMatching(/method: expected one of "POST"/),
      3: expect.stringMatching(/url: expected \/v1\/inference-requests or/),
    });
    expect(runsOf(mapRows(block(1, json('body', body({}))), none, signature))).toEqual(['0-0 [1,2]']);
  });
});
