import { expect, it } from 'vitest';
import { ParsedTexts } from './parsed-texts.js';

it('a text that has not changed gives the same object; one that has, another; one that is gone, none', () => {
  const texts = new ParsedTexts((text) => JSON.parse(text) as object);
  const first = texts.of({ a: '{"n":1}', b: '{"n":1}' });
  const second = texts.of({ a: '{"n":1}', b: '{"n":2}' });
  expect(second.get('a')).toBe(first.get('a'));
  expect(second.get('b')).toEqual({ n: 2 });
  expect([...texts.of({ a: '{"n":1}' }).keys()]).toEqual(['a']);
});

it('a text that cannot be parsed leaves what was known', () => {
  const texts = new ParsedTexts((text) => JSON.parse(text) as object);
  const before = texts.of({ a: '{}' }).get('a');
  expect(() => texts.of({ a: '{' })).toThrow();
  expect(texts.of({ a: '{}' }).get('a')).toBe(before);
});
