import { expect, it } from 'vitest';
import { endHint } from './end-hint.js';

const taken = ['error: api did not start: listen EADDRINUSE: address already in use 127.0.0.1:8080'];

it('an API whose port is taken is told how to get another', () => {
  expect(endHint('API', taken)).toMatch(/--api-port 0/);
  expect(endHint('API', ['error: no Redis'])).toBe('');
  expect(endHint('worker 1', taken)).toBe('');
});
