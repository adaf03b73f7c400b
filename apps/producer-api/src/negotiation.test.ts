/** What Prefer and Accept ask for. */
import { describe, expect, it } from 'vitest';
import { readPreferences, resultFormat } from './negotiation.js';

describe('Prefer', () => {
  it.each<[string | undefined, number, string | undefined]>([
    [undefined, 0, undefined],
    ['wait=30', 30_000, 'wait=30'],
    ['Wait="5"; strict, respond-async', 5_000, 'wait=5'],
    ['respond-async, wait=7', 7_000, 'wait=7'],
    ['wait=999', 60_000, 'wait=60'],
    ['wait=0', 0, 'wait=0'],
    ['respond-async', 0, 'respond-async'],
    ['return=minimal, waiting=3', 0, undefined],
  ])('%s', (prefer, waitMs, applied) => {
    expect(readPreferences(prefer)).toEqual({ waitMs, applied });
  });

  it.each(['wait', 'wait=', 'wait=soon', 'wait=-1', 'wait=1.5'])(
    'is refused where it tells no time: %s',
    (prefer) => {
      expect(() => readPreferences(prefer)).toThrow(/Prefer: expected wait=<whole seconds>/);
    },
  );
});

describe('Accept', () => {
  it.each<[string | undefined, string]>([
    [undefined, 'json'],
    ['*/*', 'json'],
    ['application/*', 'json'],
    ['application/octet-stream', 'binary'],
    ['application/octet-stream, */*;q=0.1', 'binary'],
    ['application/octet-stream;q=0.5, application/json', 'json'],
    ['application/json;q=0, */*', 'binary'],
    ['text/html, */*;q=0.8', 'json'],
  ])('%s', (accept, format) => {
    expect(resultFormat(accept)).toBe(format);
  });

  it('of neither is refused', () => {
    expect(() => resultFormat('text/html, image/*')).toThrow(
      /application\/octet-stream, received text\/html/,
    );
  });
});
