/** Lines of JSONL as rows: what a line may be, what columns become, and that a bad line fails alone. */

import type { BulkColumnType } from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Piece } from '../bulk-input.js';
import { InputFolder, piecesOf, readFile } from '../input.fixture.js';
import { openInput } from '../open-input.js';
import { readCsv } from './csv-rows.js';
import { readJsonLines } from './jsonl-rows.js';

let folder: InputFolder;
beforeAll(async () => {
  folder = await InputFolder.make();
});
afterAll(() => folder.remove());

async function read(
  lines: readonly (string | object)[],
  options: { types?: Record<string, BulkColumnType>; columns?: string[] } = {},
): ReturnType<typeof readFile> {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  const path = await folder.write('rows.jsonl', text);
  const { types, columns } = options;
  return readFile(path, { format: 'jsonl', ...(types && { types }) }, { columns: columns ?? null });
}

describe('columns are of a type where all values agree', () => {
  it('numbers, texts, truths, lists of one length, lists of them', async () => {
    const { types, rows, input } = await read([
      { n: 1, s: 'a', b: true, l: [1, 2.5], m: [[1], [2]], o: { a: 1 } },
      { n: 2.5, s: 'é', b: false, l: [3, 4], m: [[3], [4]], o: null },
    ]);
    expect(types).toEqual({ n: 'float64', s: 'string', b: 'bool', l: 'list', m: 'list', o: 'json' });
    expect(rows[1]).toEqual({ n: 2.5, s: 'é', b: false, l: [3, 4], m: [[3], [4]], o: null });
    expect(input.columns.map(({ name }) => name)).toEqual(['n', 's', 'b', 'l', 'm', 'o']);
    expect(input.read).toMatchObject({ format: 'jsonl', lines: 'columns' });
  });

  it('JSON where they do not: ragged lists, mixed kinds', async () => {
    const { types, rows } = await read([
      { a: [1], b: 1, c: [[1], [2, 3]], d: null },
      { a: [1, 2], b: 'x', c: [[1], [2]], d: null },
    ]);
    expect(types).toEqual({ a: 'json', b: 'json', c: 'json', d: 'json' });
    expect(rows[0]).toEqual({ a: [1], b: 1, c: [[1], [2, 3]], d: null });
  });

  it('values that are missing or null are none', async () => {
    const { rows, types } = await read([{ a: 1, b: 'x', l: [1] }, { a: null }, { b: 'y', new: 3 }]);
    expect(rows.map(({ a }) => a)).toEqual([1, null, null]);
    expect(rows.map(({ b }) => b)).toEqual(['x', null, 'y']);
    expect(rows.map(({ l }) => l)).toEqual([[1], null, null]);
    expect(rows.map((row) => row.new)).toEqual([null, null, 3]);
    expect(types).toMatchObject({ a: 'float64', l: 'list' });
  });

  it('integers that a double cannot hold stay exact where all are integers', async () => {
    const { rows, types } = await read([
      '{"id": 9007199254740993, "u": 18446744073709551615, "f": 1e300, "s": "9007199254740993"}',
      '{"id": -5, "u": 1, "f": 0.1234567890123456, "s": "x\\"1234567890123456789"}',
      '{"u": 2, "f": 12345678901234567890}',
    ]);
    expect(types).toMatchObject({ id: 'int64', u: 'uint64', f: 'float64', s: 'string' });
    expect(rows.map(({ id }) => id)).toEqual([9007199254740993n, -5n, null]);
    expect(rows[0]?.u).toBe(18446744073709551615n);
    expect(rows[1]).toMatchObject({ f: 0.1234567890123456, s: 'x"1234567890123456789' });
  });

  it('only those that are wanted are made; one that is nowhere has no values', async () => {
    const { rows } = await read([{ a: 1, b: 2 }], { columns: ['b', 'none', '__proto__', 'constructor'] });
    expect(rows).toEqual([
      Object.fromEntries([
        ['b', 2],
        ['none', null],
        ['__proto__', null],
        ['constructor', null],
      ]),
    ]);
  });

  it('a type that was told is kept, and a value that does not fit fails its row alone', async () => {
    const { rows, types, failures } = await read(
      [{ a: 1, b: 3, id: 7 }, { a: 'x', b: 4, id: 'q' }, { a: 2, b: 300, id: 1 }, '{"id":9007199254740993}'],
      { types: { a: 'float32', b: 'uint8', id: 'string' } },
    );
    expect(types).toEqual({ a: 'float32', b: 'uint8', id: 'string' });
    expect(rows[0]).toEqual({ a: 1, b: 3, id: '7' });
    expect(rows[3]).toEqual({ a: null, b: null, id: '9007199254740993' });
    expect(failures.get(1)?.message).toBe(
      'line 2 (byte 21) column "a": "x" where a number (float32) was expected',
    );
    expect(failures.get(2)?.message).toMatch(/column "b": 300 where uint8 \(a whole number from 0 to 255\)/);
    expect(failures.size).toBe(2);
  });
});

describe('a bad line fails alone, by line and byte', () => {
  it('that is no JSON, no object, or no UTF-8', async () => {
    const path = await folder.write(
      'bad.jsonl',
      Buffer.concat([
        Buffer.from('{"a":1}\n\n{"a":\n[1]\n"é"\n{"a":"'),
        Buffer.from([0xc3, 0xa9, 0xff, 0x22]),
        Buffer.from('}\r\n{"a":2} x\n{"a":3}'),
      ]),
    );
    const { rows, failures, raw } = await readFile(path, { format: 'jsonl' });
    expect(rows.map(({ a }) => a)).toEqual([1, null, null, null, null, null, 3]);
    const told = [...failures.values()];
    expect(told.every(({ code, retryable }) => code === 'invalid_row' && !retryable)).toBe(true);
    expect(told[0]?.message).toMatch(
      /^line 3 \(byte 9\) is not valid JSON: .*; write one JSON object a line/,
    );
    expect(told[1]?.message).toBe(
      'line 4 (byte 15) is [1], where a JSON object was expected, such as {"x": 1}',
    );
    expect(told[2]?.message).toMatch(/^line 5 .* is "é"/);
    expect(told[3]?.message).toBe(
      'line 6 (byte 24) is not valid UTF-8 at its byte 8; save the file as UTF-8',
    );
    expect(told[3]?.details).toEqual({ line: 6, byte: 24 });
    expect(told[4]?.message).toMatch(/^line 7 /);
    expect(raw.slice(0, 3)).toEqual([{ a: 1 }, '{"a":', '[1]']);
    expect(raw[4]).toContain('\ufffd');
  });

  it('finds the first invalid byte among characters of all lengths', async () => {
    const characters = ['a', 'é', '€', '😀'];
    for (let count = 1; count <= 9; count += 1) {
      const text = Array.from({ length: count }, (_, i) => characters[(i + count) % 4]).join('');
      for (const bad of [[0xff], [0xe2, 0x82], [0x80], [0xf0, 0x9f]]) {
        const start = Buffer.from(`{"a":"${text}`);
        const path = await folder.write(
          'utf8.jsonl',
          Buffer.concat([Buffer.from('{}\n'), start, Buffer.from(bad), Buffer.from('"}\n')]),
        );
        const { failures } = await readFile(path, { format: 'jsonl' });
        expect(failures.get(1)?.message).toContain(`at its byte ${start.length};`);
      }
    }
  });

  it('a file of which no line is an object is refused, with its first line', async () => {
    await expect(read(['hello', 'world'])).rejects.toThrow(
      /line 1 is not valid JSON.*\(and 1 more like it\)/,
    );
    await expect(read(['[{"a":1},', '{"a":2}]'])).rejects.toThrow(/jq -c "\.\[\]"/);
  });

  it('an empty file has no rows', async () => {
    const { rows, input } = await read(['', ' ', '']);
    expect(rows).toEqual([]);
    expect(input.columns).toEqual([]);
  });
});

it('a large piece is read in turns: what waits for the event loop does not wait for all of it', async () => {
  for (const format of ['jsonl', 'csv'] as const) {
    const row = format === 'jsonl' ? `{"a":1,"b":"${'x'.repeat(200)}"}\n` : `1,${'x'.repeat(200)}\n`;
    const path = await folder.write('large', (format === 'csv' ? 'a,b\n' : '') + row.repeat(20_000));
    let turns = 0;
    const count = (): void => {
      turns += 1;
      waiting = setImmediate(count);
    };
    let waiting = setImmediate(count);
    const input = await openInput({ path, read: { format }, compression: 'none' });
    const [piece] = await piecesOf(input);
    const bytes = Buffer.from(await input.payloadOf(piece as Piece));
    await input.close();
    const before = turns;
    const read = format === 'jsonl' ? readJsonLines : readCsv;
    const wanted = { ...(piece as Piece), read: input.read, columns: null };
    expect((await read(bytes, wanted)).rows).toBe(20_000);
    clearImmediate(waiting);
    // At 4 ms a turn, and however fast the machine is, more than one.
    expect(turns - before).toBeGreaterThan(1);
  }
});

describe('lines that are requests', () => {
  it('are told by their inputs', async () => {
    const { rows, input, types } = await read([
      { inputs: { x: [1, 2] }, custom_id: 'a', parameters: { k: 1 } },
      { inputs: { x: [3] }, id: 7 },
      { inputs: { x: 1 } },
    ]);
    expect(input.read.lines).toBe('requests');
    expect(input.columns.map(({ name }) => name)).toEqual(['custom_id', 'inputs', 'parameters']);
    expect(types).toEqual({ custom_id: 'string', inputs: 'json', parameters: 'json' });
    expect(rows).toEqual([
      { custom_id: 'a', inputs: { x: [1, 2] }, parameters: { k: 1 } },
      { custom_id: '7', inputs: { x: [3] }, parameters: null },
      { custom_id: null, inputs: { x: 1 }, parameters: null },
    ]);
  });

  it('fail alone where they are not', async () => {
    const { failures } = await read([
      { inputs: { x: 1 } },
      { custom_id: 'b' },
      { inputs: { x: 1 }, items: [] },
      { inputs: { x: 1 }, custom_id: {} },
    ]);
    expect([...failures.values()].map(({ message }) => message)).toEqual([
      expect.stringMatching(/^line 2 .* inputs: undefined, where an object was expected/),
      expect.stringMatching(/^line 3 .* "items" is not known here/),
      expect.stringMatching(/^line 4 .* custom_id: \{\}, where a text was expected/),
    ]);
  });

  it('a column called inputs among others is a column', async () => {
    const { input } = await read([{ inputs: { a: 1 }, label: 3 }]);
    expect(input.read.lines).toBe('columns');
  });

  it('of the OpenAI batch format give their body', async () => {
    const good = {
      custom_id: 'a',
      method: 'POST',
      url: '/v1/inference-requests',
      body: { model: 'm', inputs: {} },
    };
    const { rows, failures, input } = await read([
      good,
      { ...good, method: 'GET' },
      { ...good, custom_id: null },
    ]);
    expect(input.read.lines).toBe('openai');
    expect(rows[0]).toEqual({ custom_id: 'a', url: good.url, body: good.body });
    expect(failures.get(1)?.message).toMatch(/method: "GET", where "POST" was expected/);
    expect(failures.get(2)?.message).toMatch(/has no "custom_id"/);
  });
});

describe('the file of the errors of another job', () => {
  const rejected = (row: number, input: unknown): object => ({
    row,
    custom_id: `c${row}`,
    code: 'invalid_row',
    message: 'was bad',
    input,
  });

  it('is read as its inputs, which keep their row numbers', async () => {
    const { rows, rowNumbers, raw, input } = await read([
      rejected(7, { a: 1 }),
      rejected(1_000_000, { a: 2 }),
    ]);
    expect(input.read).toMatchObject({ lines: 'columns', rejected: true });
    expect(input.columns.map(({ name }) => name)).toEqual(['a']);
    expect(rows).toEqual([{ a: 1 }, { a: 2 }]);
    expect(rowNumbers).toEqual([7, 1_000_000]);
    expect(raw).toEqual([{ a: 1 }, { a: 2 }]);
  });

  it('takes a line that could not be read once it is mended, also within its quotes', async () => {
    const { rows, failures, rowNumbers } = await read([
      rejected(3, '{"a": 1}'),
      rejected(4, '{"a": '),
      { a: 1 },
      JSON.stringify(rejected(6, { a: 'large' })).replace('"large"', '9007199254740993'),
    ]);
    expect(rows.map(({ a }) => a)).toEqual([1n, null, null, 9007199254740993n]);
    expect(failures.get(1)?.message).toMatch(/^line 2 .* it was no JSON object and still is none/);
    expect(failures.get(2)?.message).toMatch(/^line 3 .* is no line of a file of errors/);
    expect(rowNumbers).toEqual([3, 4, 2, 6]);
  });

  it('holds requests too', async () => {
    const { rows, input } = await read([rejected(0, { custom_id: 'x', inputs: { a: 1 } })]);
    expect(input.read).toMatchObject({ lines: 'requests', rejected: true });
    expect(rows).toEqual([{ custom_id: 'x', inputs: { a: 1 }, parameters: null }]);
  });

  it('is not taken for one where a column is called input', async () => {
    const { input } = await read([{ input: 1, code: 'x' }]);
    expect(input.read.rejected).toBeUndefined();
  });
});
