/** Where a redirect may lead; following them is tested with a real server in http-source.test.ts. */
import { describe, expect, it } from 'vitest';
import { redirectTarget } from './http-requests.js';

const target = (from: string, to: string | null): string => redirectTarget(new URL(from), to).href;

describe('a redirect', () => {
  it('may stay, move to another host, and become https', () => {
    expect(target('https://a/m/x', 'y')).toBe('https://a/m/y');
    expect(target('https://a/m/x', 'https://b/y')).toBe('https://b/y');
    expect(target('http://a/x', 'https://a/x')).toBe('https://a/x');
    expect(target('http://a/x', 'http://b/x')).toBe('http://b/x');
  });

  it('never leads from https to less, nor out of http', () => {
    expect(() => target('https://a/x', 'http://a/x')).toThrow('from https: only https: is');
    expect(() => target('http://a/x', 'file:///etc/passwd')).toThrow('was not followed');
  });

  it('without an address is an error', () => {
    expect(() => target('https://a/x', null)).toThrow('https://a/x: a redirect to "", which is no address');
    expect(() => target('https://a/x', 'http://')).toThrow('which is no address');
  });
});
