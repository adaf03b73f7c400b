/** Records of CSV as rows: RFC 4180, types, and that a bad record fails alone. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OpenOptions } from '../bulk-input.js';
import { InputFolder, readFile } from '../input.fixture.js';

let folder: InputFolder;
beforeAll(async () => {
  folder = await InputFolder.make();
});
afterAll(() => folder.remove());

async function read(
  text: string | Uint8Array,
  settings: Partial<OpenOptions['read']> = {},
  columns: string[] | null = null,
): ReturnType<typeof readFile> {
  const path = await folder.write('rows.csv', text);
  return readFile(path, { format: 'csv', ...settings }, { columns });
}

describe('fields', () => {
  it('follow RFC 4180: quotes, doubled quotes, newlines and delimiters in them, both kinds of newline', async () => {
    const { rows, failures, input } = await read('a,"b ""x""",c\r\n1,"x, ""y""\r\nz",\n2,"",w');
    expect(failures.size).toBe(0);
    expect(input.read.header).toEqual(['a', 'b "x"', 'c']);
    expect(rows).toEqual([
      { a: 1, 'b "x"': 'x, "y"\r\nz', c: null },
      { a: 2, 'b "x"': null, c: 'w' },
    ]);
  });

  it('are numbers where all values of the column are, else texts; ids with zeros before them stay texts', async () => {
    const { types, rows } = await read(
      'n,s,id,e,big,h,inf\n1,1,007,,9007199254740993,1,1\n-2.5e3,x,1,,5,0x10,nan\n',
    );
    expect(types).toEqual({
      n: 'float64',
      s: 'string',
      id: 'string',
      e: 'json',
      big: 'int64',
      h: 'string',
      inf: 'float64',
    });
    expect(rows[0]).toEqual({ n: 1, s: '1', id: '007', e: null, big: 9007199254740993n, h: '1', inf: 1 });
    expect(rows[1]).toMatchObject({ n: -2500, h: '0x10', inf: Number.NaN });
  });

  it('have the types that were told', async () => {
    const { types, rows } = await read('a,b,c,d,e\n1,3,true,007,"[1,2]"\n,-9007199254740993,0,,\n', {
      types: { a: 'float32', b: 'int64', c: 'bool', d: 'string', e: 'json' },
    });
    expect(types).toEqual({ a: 'float32', b: 'int64', c: 'bool', d: 'string', e: 'list' });
    expect(rows).toEqual([
      { a: 1, b: 3n, c: true, d: '007', e: [1, 2] },
      { a: null, b: -9007199254740993n, c: false, d: null, e: null },
    ]);
  });

  it('may have names that every object has', async () => {
    const text = 'constructor,__proto__,toString,a\n1,x,3,4\n';
    const { input, rows, failures } = await read(text, { types: { a: 'float64' } });
    expect(failures.size).toBe(0);
    expect(Object.entries(rows[0] ?? {}).flat()).toEqual(expect.arrayContaining(['constructor', 1, 3, 4]));
    expect(input.columns.map(({ type }) => type)).toEqual([null, null, null, 'float64']);
  });

  it('are parted by the delimiter that was told; a tab is never blank', async () => {
    expect((await read('a;b\n1;"2;3"\n', { delimiter: ';' })).rows).toEqual([{ a: 1, b: '2;3' }]);
    expect((await read('a\tb\n\t\n1\t2\n', { delimiter: '\t' })).rows).toEqual([
      { a: null, b: null },
      { a: 1, b: 2 },
    ]);
    for (const delimiter of ['"', '\n', '¦'])
      await expect(read('a\n1\n', { delimiter })).rejects.toThrow(/expected one ASCII character/);
  });

  it('only those of wanted columns are made, in the order in which they are wanted', async () => {
    const { rows } = await read('a,b,c\n1,2,3\n', {}, ['c', 'a', 'none']);
    expect(Object.entries(rows[0] ?? {})).toEqual([
      ['c', 3],
      ['a', 1],
      ['none', null],
    ]);
  });
});

describe('a bad record fails alone, by line and column', () => {
  it('with too few or too many fields', async () => {
    const { rows, failures, raw } = await read('a,b\n1,2\n3\n\n4,5,6\n7,8\n');
    expect(rows.map(({ a }) => a)).toEqual([1, null, null, 7]);
    expect(failures.get(1)).toMatchObject({ code: 'invalid_row', details: { line: 3, byte: 8 } });
    expect(failures.get(1)?.message).toMatch(
      /^line 3 \(byte 8\) has 1 field where the header has 2: column "b" and those behind it are missing/,
    );
    expect(failures.get(2)?.message).toMatch(/^line 5 .* has 3 fields where the header has 2: there is more/);
    expect(raw).toEqual([{ a: 1, b: 2 }, '3', '4,5,6', { a: 7, b: 8 }]);
  });

  it('with a value that is not of its type, among records with newlines in quotes', async () => {
    const { rows, failures, raw } = await read('s,n\n"a\nb",1\n"c\n\nd",x\ne,300\nf,2\n', {
      types: { n: 'int8' },
    });
    expect(rows.map(({ s, n }) => [s, n])).toEqual([
      ['a\nb', 1],
      // The rest of the row is kept: its id names the row that failed.
      ['c\n\nd', null],
      ['e', null],
      ['f', 2],
    ]);
    expect(failures.get(1)?.message).toBe(
      'line 4 (byte 12), column "n": "x" where int8 (a whole number from -128 to 127) was expected',
    );
    expect(failures.get(2)?.message).toMatch(/^line 7 .*, column "n": "300" where int8/);
    expect(raw[1]).toEqual({ s: 'c\n\nd', n: 'x' });
  });

  it('with quotes that break the rules', async () => {
    const { rows, failures } = await read('a,b\n1,"x"\n2,5" pipe\n3,"y"z\n4,"w"\n5,"open\n6,7\n');
    expect(rows.map(({ a }) => a)).toEqual([1, null, null, 4, null]);
    expect(failures.get(1)?.message).toMatch(/^line 3 .* has a quote in field 2 in the middle of a field/);
    expect(failures.get(2)?.message).toMatch(/^line 4 .* has letters in field 2 behind a closing quote/);
    expect(failures.get(4)?.message).toMatch(/^line 6 .* has a quote in field 2 that is never closed/);
  });

  it('with bytes that are no UTF-8', async () => {
    const bytes = Buffer.concat([
      Buffer.from('a,b\né,1\n'),
      Buffer.from([0x78, 0xe9, 0x2c, 0x32, 10]),
      Buffer.from('€,3'),
    ]);
    const { rows, failures } = await read(bytes);
    expect(rows.map(({ a }) => a)).toEqual(['é', null, '€']);
    expect(failures.get(1)?.message).toMatch(/^line 3 \(byte 9\) is not valid UTF-8 at its byte 1/);
  });
});

describe('the header', () => {
  it('must be there', async () => {
    await expect(read('')).rejects.toThrow(/is empty, where a header .* was expected/);
    expect((await read('a,b\n')).rows).toEqual([]);
  });

  it('names no column twice, and a column without a name by its place', async () => {
    await expect(read('a,b,a\n1,2,3\n')).rejects.toThrow(
      /line 1, the header, names "a" twice \(fields 1 and 3\)/,
    );
    expect((await read(',x\n0,1\n')).rows).toEqual([{ column_1: 0, x: 1 }]);
  });

  it('has the columns that types were told of', async () => {
    await expect(read('a,b\n1,2\n', { types: { c: 'int8' } })).rejects.toThrow(
      /"c" is no column of .*; it has a, b/,
    );
  });
});
