/** Malformed JSON is answered with its position, whatever V8 says about it. */
import { describe, expect, it } from 'vitest';
import { InvalidInputError, jsonFaultPosition, parseJson } from './index.js';

function received(text: string): string {
  try {
    parseJson(text);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    expect(error.code).toBe('malformed_json');
    return (error.violations[0] as { received: string }).received;
  }
  return 'taken';
}

describe('parseJson', () => {
  it('gives what JSON.parse gives', () => {
    expect(parseJson(' {"a": [1, -2.5e3, "x\\u00e9", true, null, {}, []]} ')).toEqual({
      a: [1, -2500, 'xé', true, null, {}, []],
    });
  });

  it.each([
    ['{"a": x}', 'position 6 (line 1, column 7)'],
    ['{"a": 1,}', 'position 8 (line 1, column 9)'],
    ['{"a":\n 1,\n b}', 'position 11 (line 3, column 2)'],
    ['', 'position 0 (line 1, column 1)'],
    ['{"a":', 'position 5 (line 1, column 6)'],
    ['[1, 2', 'position 5 (line 1, column 6)'],
    ['[1 2]', 'position 3 (line 1, column 4)'],
    ['[1}', 'position 2 (line 1, column 3)'],
    ['[,1]', 'position 1 (line 1, column 2)'],
    ['{"a" 1}', 'position 5 (line 1, column 6)'],
    ['{a: 1}', 'position 1 (line 1, column 2)'],
    ["{'a': 1}", 'position 1 (line 1, column 2)'],
    ['{} {}', 'position 3 (line 1, column 4)'],
    ['"open', 'position 5 (line 1, column 6)'],
    ['"a\nb"', 'position 2 (line 1, column 3)'],
    ['"\\x"', 'position 1 (line 1, column 2)'],
    ['[01]', 'position 2 (line 1, column 3)'],
    ['[NaN]', 'position 1 (line 1, column 2)'],
    ['[1.]', 'position 2 (line 1, column 3)'],
  ])('says where %j is wrong', (text, position) => {
    expect(received(text)).toContain(position);
    expect(received(text)).toMatch(/^[^"]*at position \d+ \(line \d+, column \d+\)$/);
  });

  it('does not overflow the stack on deep nesting or long strings', () => {
    const deep = '['.repeat(200_000);
    expect(jsonFaultPosition(deep)).toBe(deep.length);
    const long = `{"b64": "${'A'.repeat(5_000_000)}`;
    expect(received(long)).toContain(`position ${long.length}`);
  });

  it('finds for every cut of a valid text that it ends too soon or is whole', () => {
    const text = '{"a": [1, -2.5e3, "x\\u00e9", true, null, {}, []], "b": {"c": "d"}}';
    for (let length = 0; length < text.length; length++) {
      const position = jsonFaultPosition(text.slice(0, length));
      // A cut inside a number, a word or an escape is found at its beginning.
      expect(position).toBeLessThanOrEqual(length);
      expect(position).toBeGreaterThanOrEqual(length - 6);
    }
  });
});
