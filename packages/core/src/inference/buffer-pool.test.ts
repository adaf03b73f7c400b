import { expect, test } from 'vitest';
import { BufferPool } from './buffer-pool.js';

test('a released buffer is used again for its size class', () => {
  const pool = new BufferPool();
  const first = pool.acquire(5_000);
  expect(first.byteLength).toBe(8_192);
  pool.release(first);
  expect(pool.acquire(8_000)).toBe(first);
});

test('a buffer that was transferred is released as the object it came back as', () => {
  const pool = new BufferPool();
  const sent = pool.acquire(10_000);
  const returned = structuredClone(sent, { transfer: [sent] });
  expect(() => pool.release(sent)).toThrow('not a buffer of this pool: 0 bytes');
  pool.release(returned);
  expect(pool.stats).toEqual({ heldBytes: 0, freeBytes: 16_384 });
});

test('free bytes stay below the limit', () => {
  const pool = new BufferPool(10_000);
  const buffers = [pool.acquire(8_000), pool.acquire(8_000)];
  for (const buffer of buffers) pool.release(buffer);
  expect(pool.stats).toEqual({ heldBytes: 0, freeBytes: 8_192 });
});

test('a second release of the same buffer is an error', () => {
  const pool = new BufferPool();
  const buffer = pool.acquire(1);
  pool.release(buffer);
  expect(() => pool.release(buffer)).toThrow('twice');
});
