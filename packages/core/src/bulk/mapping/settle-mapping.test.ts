import type { ModelSignature, SignatureTensor } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { RemudaError } from '../../errors.js';
import type { ColumnInfo } from '../columns.js';
import { columnsNamed, textOfColumns } from './column-text.js';
import { describeMapping } from './describe-mapping.js';
import { type MappingWishes, mapTexts, settleMapping } from './settle-mapping.js';

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
const model = (...inputs: SignatureTensor[]) =>
  ({ model: 'm', inputs }) as Pick<ModelSignature, 'model' | 'inputs'>;
const columns = (type: string | null, ...names: string[]): ColumnInfo[] =>
  names.map((name) => ({ name, type }));
const numbered = (count: number): string[] => Array.from({ length: count }, (_, i) => `f${i}`);

function problemsOf(wishes: MappingWishes): string[] {
  try {
    settleMapping(wishes);
  } catch (error) {
    if (!(error instanceof RemudaError)) throw error;
    expect(error.code).toBe('invalid_request');
    const violations = error.details.violations as { path: string; expected: string; received: string }[];
    return violations.map(({ path, expected, received }) => `${path}: ${expected} | ${received}`);
  }
  return [];
}

describe('the text of a mapping', () => {
  const known = ['a', 'b', 'f0', 'f1', 'f2', 'g08', 'g09', 'g10', 'odd, "name"', 'x_1_y', 'x_2_y'];
  it.each<[string, string[]]>([
    ['a', ['a']],
    ['[a, b]', ['a', 'b']],
    ['[ a,b ]', ['a', 'b']],
    ['[f0..f2]', ['f0', 'f1', 'f2']],
    ['f0..f2', ['f0', 'f1', 'f2']],
    ['[f0..2]', ['f0', 'f1', 'f2']],
    ['[f2..f0]', ['f2', 'f1', 'f0']],
    ['[g08..g10]', ['g08', 'g09', 'g10']],
    ['[x_1_y..x_2_y]', ['x_1_y', 'x_2_y']],
    ['[f*]', ['f0', 'f1', 'f2']],
    ['[g?0, a]', ['g10', 'a']],
    ['["odd, ""name""", a]', ['odd, "name"', 'a']],
    ['\'odd, "name"\'', ['odd, "name"']],
  ])('%s names its columns', (text, expected) => {
    expect(columnsNamed(text, known)).toEqual({ columns: expected });
  });

  it.each<[string, RegExp, RegExp]>([
    ['[f0..f5]', /columns for all 6 names of f0\.\.f5 \(the input has \[f0\.\.f2\]\)/, /no "f3", "f4", "f5"/],
    ['f9', /did you mean "f[012]"/, /"f9"/],
    ['[z*]', /columns that match z\*/, /none of "a", "b"/],
    ['[a, a]', /each column once/, /"a" a second time/],
    ['[a,,b]', /a name between commas/, /a,,b/],
    ['[]', /names in brackets/, /none/],
    ['[f0..g10]', /the same name on both sides/, /f0\.\.g10/],
    ['[f0..f999999]', /at most 100000/, /1000000/],
  ])('%s is refused', (text, expected, received) => {
    expect(columnsNamed(text, known)).toEqual({
      expected: expect.stringMatching(expected),
      received: expect.stringMatching(received),
    });
  });

  it('that is shown names the same columns again', () => {
    const names = [
      'f0',
      'f1',
      'f2',
      'f3',
      'p07',
      'p08',
      'p09',
      'p10',
      'a b',
      'c,d',
      '"',
      "'",
      'x..y',
      '*',
      '[z]',
      ' s ',
      'ü',
      '9',
      '10',
      '11',
    ];
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % below;
    };
    for (let round = 0; round < 300; round++) {
      const left = [...names];
      const chosen = Array.from(
        { length: 1 + random(8) },
        () => left.splice(random(left.length), 1)[0] as string,
      );
      if (random(2)) chosen.sort();
      expect(columnsNamed(textOfColumns(chosen), names)).toEqual({ columns: chosen });
    }
    expect(textOfColumns(numbered(30))).toBe('[f0..f29]');
  });
});

describe('a mapping is settled', () => {
  it('by what was asked for, with the shape of the metadata', () => {
    const mapping = settleMapping({
      map: { x: '[f0..f29]' },
      columns: columns('float32', 'id', ...numbered(30)),
      keep: ['id'],
      signature: model(tensor('x', ['N', 30])),
      parameters: { t: 1 },
    });
    expect(mapping).toEqual({
      inputs: [{ input: 'x', columns: numbered(30), rowShape: [30] }],
      keep: ['id'],
      idColumn: null,
      parameters: { t: 1 },
    });
    expect(mapTexts(mapping)).toEqual({ x: '[f0..f29]' });
  });

  it('by default from the column of the name, or from all that are neither kept nor the id', () => {
    const named = settleMapping({
      columns: columns('list<float32>', 'x', 'y'),
      signature: model(tensor('x', ['N', 4])),
    });
    expect(named.inputs).toEqual([{ input: 'x', columns: ['x'], rowShape: [4] }]);
    const rest = settleMapping({
      columns: columns('float64', 'custom_id', 'a', 'label', 'b'),
      keep: ['label'],
      signature: model(tensor('x', ['N', 2])),
    });
    expect(rest).toEqual({
      inputs: [{ input: 'x', columns: ['a', 'b'], rowShape: [2] }],
      keep: ['label'],
      idColumn: 'custom_id',
    });
  });

  it.each<[string, (number | string)[], number | null, string[], string | null, number[]]>([
    ['a symbolic axis is as long as there are columns', ['N', 'features'], 0, numbered(7), 'float32', [7]],
    ['the rows may stand along another axis', [3, 'N'], 1, numbered(3), 'float32', [3]],
    ['a fixed part is divided out', ['N', 2, 'w'], 0, numbered(6), 'float32', [2, 3]],
    ['lists tell a symbolic axis row by row', ['N', 'seq'], 0, ['f0'], 'list<int64>', [-1]],
    ['a column of unknown type may hold lists', ['N', 4], 0, ['f0'], null, [4]],
    ['a value for each row needs one column', ['N'], 0, ['f0'], 'int32', []],
    ['an input that all rows share has its whole shape', [2], null, numbered(2), 'float32', [2]],
  ])('so that %s', (_, shape, batch_axis, names, type, rowShape) => {
    const { inputs } = settleMapping({
      columns: columns(type, ...names),
      signature: model(tensor('x', shape, { batch_axis })),
    });
    expect(inputs[0]?.rowShape).toEqual(rowShape);
  });

  it('for images from the one column of bytes', () => {
    const image = tensor('image', ['N'], { datatype: 'BYTES', kind: 'image' });
    const given = [...columns('string', 'path'), ...columns('bytes', 'picture')];
    expect(settleMapping({ columns: given, signature: model(image) }).inputs).toEqual([
      { input: 'image', columns: ['picture'], rowShape: [] },
    ]);
  });

  it('without any columns where lines are requests', () => {
    const signature = model(tensor('x', ['N', 4]));
    expect(settleMapping({ columns: [], lines: 'openai', signature })).toEqual({
      inputs: [],
      keep: [],
      idColumn: 'custom_id',
    });
    expect(problemsOf({ columns: [], lines: 'requests', map: { x: 'a' }, signature })).toEqual([
      'map.x: no mapping: each line holds its inputs by name | a',
    ]);
  });
});

describe('a mapping that does not fit says all that is wrong', () => {
  it('with near names for what is missing', () => {
    const found = problemsOf({
      map: { x: '[age, incom]', y: 'age' },
      columns: columns('float32', 'age', 'income'),
      keep: ['nmae'],
      idColumn: 'key',
      signature: model(tensor('x', ['N', 2])),
    });
    expect(found).toEqual([
      expect.stringMatching(/^id_column: a column of the input \(the input has \[age, income\]\) \| "key"$/),
      expect.stringMatching(/^keep\[0\]: a column of the input/),
      expect.stringMatching(/^map\.y: an input of m: "x" .*\| "y" = age$/),
      expect.stringMatching(/^map\.x: a column of the input \(did you mean "income"\?\) \| "incom"$/),
    ]);
  });

  it.each<[string, Partial<MappingWishes>, RegExp]>([
    [
      'too many columns',
      { columns: columns('float32', ...numbered(31)) },
      /30 columns \(FP32 \[30\] a row\), or one column of lists of 30.* \| 31 columns/,
    ],
    [
      'a column of texts',
      { columns: [...columns('float32', ...numbered(29)), { name: 'city', type: 'string' }] },
      /a column of numbers \(FP32\).* \| "city" of type string/,
    ],
    [
      'one number for many',
      { columns: columns('float32', 'x') },
      /30 columns .* \| 1 column, "x" of type float32/,
    ],
    [
      'lists that are stacked',
      { map: { x: '[a, b]' }, columns: columns('list<float32>', 'a', 'b') },
      /single values where several are stacked/,
    ],
    [
      'a name that two columns have',
      { columns: columns('list<float32>', 'x', 'x') },
      /one column "x" \| 2 of that name/,
    ],
  ])('as with %s', (_, wishes, expected) => {
    expect(
      problemsOf({ columns: [], signature: model(tensor('x', ['N', 30])), ...wishes }).join('\n'),
    ).toMatch(expected);
  });

  it('input by input, where there are several', () => {
    const signature = model(
      tensor('ids', ['N', 'seq'], { datatype: 'INT64' }),
      tensor('mask', ['N', 'seq'], { datatype: 'INT64' }),
    );
    expect(problemsOf({ columns: columns('list<int64>', 'ids', 'masks'), signature })).toEqual([
      expect.stringMatching(
        /^map\.mask: a column "mask", or which columns make it .*did you mean "masks"\?\) \| neither$/,
      ),
    ]);
  });

  it('in the table of a dry run, beside what fits', () => {
    const described = describeMapping({
      columns: [...columns('float32', ...numbered(3)), { name: 'who', type: 'string' }],
      map: { x: '[f*]', y: 'who' },
      signature: model(tensor('x', ['N', 'w']), tensor('y', ['N'])),
    });
    expect(described).toEqual({
      inputs: [
        { input: 'x', datatype: 'FP32', shape: '3', columns: '[f0..f2]', types: '3 float32', problems: [] },
        {
          input: 'y',
          datatype: 'FP32',
          shape: '',
          columns: 'who',
          types: 'string',
          problems: ['expected a column of numbers (FP32), received "who" of type string'],
        },
      ],
      keep: [],
      idColumn: null,
      problems: [],
    });
  });
});
