import { describe, expect, it } from 'vitest';
import { cut, displayWidth, tableLines } from './table.js';

const COLUMNS = [
  { title: 'sample', shrinkTo: 6 },
  { title: 'answer', shrinkTo: 8 },
  { title: 'ms', align: 'right' as const },
];

describe('a table', () => {
  it('aligns its columns under their titles', () => {
    const rows = [
      ['one', 'yes', '1.5'],
      ['seventeen', 'no', '120'],
    ];
    expect(tableLines(COLUMNS, rows, { width: 110 })).toEqual([
      'sample     answer   ms',
      'one        yes     1.5',
      'seventeen  no      120',
    ]);
  });

  it('shrinks the widest columns that may until it fits, and never the others', () => {
    const lines = tableLines(COLUMNS, [['a-long-name-of-a-sample', 'short', '1,234,567']], { width: 30 });
    expect(lines[1]).toBe('a-long-nam…  short   1,234,567');
    expect(lines.every((line) => displayWidth(line) <= 30)).toBe(true);
  });

  it('goes on below where a column wraps, between words and else within one', () => {
    const columns = [{ title: 'who' }, { title: 'detail', shrinkTo: 8, wrap: true }, { title: 'n' }];
    const rows = [
      ['ada', 'one two three', '1'],
      ['bob', 'abcdefghijkl m', '2'],
    ];
    expect(tableLines(columns, rows, { width: 16 })).toEqual([
      'who  detail    n',
      'ada  one two   1',
      '     three',
      'bob  abcdefgh  2',
      '     ijkl m',
    ]);
  });

  it('breaks a long path or URL behind its signs', () => {
    const columns = [{ title: 'what', shrinkTo: 20, wrap: true }, { title: 'n' }];
    const rows = [
      ['POST webhooks/endpoints/:id:enable', '1'],
      ['http://127.0.0.1:9009/hook', '2'],
    ];
    expect(tableLines(columns, rows, { width: 23 })).toEqual([
      'what                  n',
      'POST                  1',
      'webhooks/endpoints/',
      ':id:enable',
      'http://127.0.0.1:     2',
      '9009/hook',
    ]);
  });

  it('stays wider than asked rather than cut below what may be', () => {
    const [, line = ''] = tableLines(COLUMNS, [['abcdefghij', 'abcdefghij', '5']], { width: 10 });
    expect(line).toBe('abcde…  abcdefg…   5');
  });

  it('counts East Asian characters as two columns', () => {
    const lines = tableLines(
      COLUMNS,
      [
        ['北京', 'x', '1'],
        ['abcd', 'y', '2'],
      ],
      { width: 110 },
    );
    expect(lines.slice(1)).toEqual(['北京    x        1', 'abcd    y        2']);
    expect(cut('北京上海', 6)).toBe('北京…');
  });

  it('keeps a cell on its line, and leaves no spaces at the end of one', () => {
    const lines = tableLines(
      [{ title: 'a' }, { title: 'b' }],
      [
        ['two\nlines', ''],
        ['x', 'y'],
      ],
      { width: 110 },
    );
    expect(lines).toEqual(['a          b', 'two lines', 'x          y']);
  });

  it('paints after it has measured', () => {
    const paint = (text: string) => `\x1b[31m${text}\x1b[0m`;
    const [, line] = tableLines(COLUMNS, [[{ text: 'bad', paint }, 'x', '1']], { width: 110 });
    expect(line).toBe('\x1b[31mbad\x1b[0m     x        1');
  });
});
