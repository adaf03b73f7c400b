/** Keys that stand twice in a JSON text, wherever, and those that only look like it. */
import { describe, expect, it } from 'vitest';
import { findDuplicateKey } from './duplicate-keys.js';

describe('findDuplicateKey', () => {
  it.each<[string, (string | number)[]]>([
    ['{"a":1,"a":2}', ['a']],
    ['{"inputs":{"x":[1,[2,3]],"y":"a","x":1}}', ['inputs', 'x']],
    ['{"items":[{"a":1},[0,{"b":[1,2],"b" : 1}]]}', ['items', 1, 1, 'b']],
    ['{"x":1,"\\u0078":2}', ['x']],
    ['{"":1,"":2}', ['']],
  ])('finds it: %s', (text, path) => {
    JSON.parse(text);
    expect(findDuplicateKey(text)).toEqual(path);
  });

  it.each([
    '{"a":{"a":{"a":"a"}},"b":["a","a"]}',
    '[{"a":1},{"a":1}]',
    '{"a":"\\"a\\":","b":"{\\"b\\":1,\\"b\\":2}\\\\"}',
    '{"a":"a","A":"a","a ":"a"}',
    '"a"',
    ' [ ] ',
  ])('finds none: %s', (text) => {
    JSON.parse(text);
    expect(findDuplicateKey(text)).toBeUndefined();
  });
});
