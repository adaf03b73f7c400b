/** Which bytes a Range asks for, and which fields are passed over. */
import { describe, expect, it } from 'vitest';
import { hasIt, RangeError416, wantedRange } from './byte-range.js';

const of = (range: string, more = {}) => wantedRange({ range, ...more }, 10, '"e"');

describe('a range', () => {
  it.each([
    ['bytes=0-0', { from: 0, to: 1 }],
    ['bytes=2-4', { from: 2, to: 5 }],
    ['bytes=7-', { from: 7, to: 10 }],
    ['bytes=-3', { from: 7, to: 10 }],
    ['bytes=-99', { from: 0, to: 10 }],
    ['bytes=8-99', { from: 8, to: 10 }],
  ])('%s', (range, expected) => expect(of(range)).toEqual(expected));

  it.each(['bytes=4-2', 'bytes=-', 'bytes=0-1,3-4', 'rows=1-2', 'bytes=a-b', ''])(
    '%s is passed over',
    (range) => expect(of(range)).toBeUndefined(),
  );

  it.each(['bytes=10-', 'bytes=10-20', 'bytes=-0'])('%s is none of the file', (range) =>
    expect(() => of(range)).toThrow(RangeError416),
  );

  it('counts where If-Range names the file as it is', () => {
    expect(of('bytes=1-1', { 'if-range': '"e"' })).toEqual({ from: 1, to: 2 });
    expect(of('bytes=1-1', { 'if-range': '"other"' })).toBeUndefined();
  });
});

it('If-None-Match names what the caller has', () => {
  const has = (known?: string) => hasIt({ 'if-none-match': known }, '"e"');
  expect([has('"e"'), has('"x", W/"e"'), has('*'), has('"x"'), has()]).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
});
