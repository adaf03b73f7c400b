import { describe, expect, it } from 'vitest';
import { decodeBase64 } from './index.js';

const decoded = (text: string): number[] => [...decodeBase64(text, ['b64'])];

describe('decodeBase64', () => {
  it.each([
    ['', []],
    ['AA==', [0]],
    ['AA', [0]],
    ['AAE=', [0, 1]],
    ['AAEC', [0, 1, 2]],
    ['+/+/', [251, 255, 191]],
    ['-_-_', [251, 255, 191]],
  ])('takes %j', (text, bytes) => expect(decoded(text)).toEqual(bytes));

  it.each([
    ['AB\nCD', 'character "\\n" at position 2'],
    ['AAAA BBBB', 'character " " at position 4'],
    ['AA=A', 'character "=" at position 2'],
    ['A===', 'character "=" at position 1'],
    ['data:;base64,AAAA', 'character ":" at position 4'],
    // Node takes the low byte of U+0141 for an "A" in some versions.
    ['ŁAAA', 'character "Ł" at position 0'],
    ['AAAé', 'character "é" at position 3'],
    ['AAA漢', 'character "漢" at position 3'],
    ['A', '1 characters: a length that base64 cannot have'],
    ['AAAAA', '5 characters: a length that base64 cannot have'],
    ['=', '1 characters, 1 of them padding: a length that base64 cannot have'],
    ['AAA==', '5 characters, 2 of them padding: a length that base64 cannot have'],
  ])('refuses %j', (text, received) => {
    expect(() => decoded(text)).toThrow(`b64: expected base64, received ${received}`);
  });

  it('finds any unknown character at any place of a long text', () => {
    const text = 'QUJD'.repeat(100);
    for (const unknown of ['!', '\0', '\t', '~', '\u00ff', '\u0141', '\u2041']) {
      for (let at = 0; at < text.length; at += 7) {
        const damaged = text.slice(0, at) + unknown + text.slice(at + 1);
        expect(() => decoded(damaged)).toThrow(`at position ${at}`);
        expect(() => decoded(text.slice(0, at) + unknown + text.slice(at))).toThrow(`at position ${at}`);
      }
    }
  });
});
