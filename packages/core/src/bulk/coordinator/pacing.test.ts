import { describe, expect, it } from 'vitest';
import { tooManyErrors } from './error-limit.js';
import { ChunkSizes, SIZING } from './sizing.js';
import { aroundKilled, halves } from './splitting.js';
import { mayStart } from './window.js';

const pace = (over: object = {}) => ({
  secondsPerRow: null,
  batchRows: 32,
  instances: 2,
  devices: 1,
  ...over,
});

describe('the size of chunks', () => {
  it('begins with a few batches while no pace is known', () => {
    expect(new ChunkSizes(32).next(pace())).toBe(128);
  });

  it('comes to a second of the pace, in whole batches and by steps', () => {
    const sizes = new ChunkSizes(32);
    expect(sizes.next(pace({ secondsPerRow: 0.001 }))).toBe(512);
    sizes.ended({ rows: 512, seconds: 0.512, bytes: 512 });
    // Two instances side by side make two thousand rows a second.
    expect(sizes.next(pace({ secondsPerRow: 0.001 }))).toBe(1_984);
  });

  it('goes by what its own chunks have cost rather than by the profile', () => {
    const sizes = new ChunkSizes(32);
    sizes.ended({ rows: 1_000, seconds: 10, bytes: 1_000 });
    expect(sizes.next(pace({ secondsPerRow: 0.0001 }))).toBe(192);
  });

  it('is bounded by the bytes of the answers and by what the job says', () => {
    const sizes = new ChunkSizes(32, { ...SIZING, mostRows: 1_000 });
    sizes.ended({ rows: 1_000, seconds: 0.001, bytes: 1_000 });
    expect(sizes.next(pace())).toBe(992);
    const large = new ChunkSizes(32);
    large.ended({ rows: 1_000, seconds: 0.001, bytes: 1_000 * 160 * 1024 });
    expect(large.next(pace())).toBe(96);
  });

  it('is a batch at least, however slow the rows are', () => {
    const sizes = new ChunkSizes(32, { ...SIZING, mostRows: 5 });
    sizes.ended({ rows: 32, seconds: 500, bytes: 32 });
    expect(sizes.next(pace())).toBe(32);
  });
});

describe('the window', () => {
  const idle = { sent: 0, unwritten: 0, bytes: 0 };

  it('has a chunk that runs and one that is ready for each device, and no more', () => {
    expect(mayStart({ ...idle, sent: 5 }, { devices: 3, bytes: 0 })).toBe(true);
    expect(mayStart({ ...idle, sent: 6 }, { devices: 3, bytes: 0 })).toBe(false);
  });

  it('is for one device where none is known', () => {
    expect(mayStart({ ...idle, sent: 1 }, { devices: 0, bytes: 0 })).toBe(true);
    expect(mayStart({ ...idle, sent: 2 }, { devices: 0, bytes: 0 })).toBe(false);
  });

  it('is bounded by bytes, but lets a single chunk through', () => {
    const limits = { bytes: 100, chunks: 10 };
    expect(mayStart(idle, { devices: 1, bytes: 1_000 }, limits)).toBe(true);
    expect(mayStart({ ...idle, sent: 1, bytes: 60 }, { devices: 1, bytes: 60 }, limits)).toBe(false);
  });

  it('sends nothing more while answers cannot be written as fast as they come', () => {
    expect(mayStart({ ...idle, unwritten: 5 }, { devices: 1, bytes: 0 })).toBe(false);
  });
});

describe('rows that fail together', () => {
  it('are parted at whole batches while there is more than one', () => {
    expect(halves({ firstRow: 64, rows: 100 }, 32)).toEqual([
      { firstRow: 64, rows: 64 },
      { firstRow: 128, rows: 36 },
    ]);
    expect(halves({ firstRow: 0, rows: 33 }, 32)).toEqual([
      { firstRow: 0, rows: 32 },
      { firstRow: 32, rows: 1 },
    ]);
  });

  it('are halved within a batch until one stands alone', () => {
    expect(halves({ firstRow: 5, rows: 5 }, 32)).toEqual([
      { firstRow: 5, rows: 3 },
      { firstRow: 8, rows: 2 },
    ]);
    expect(halves({ firstRow: 5, rows: 1 }, 32)).toEqual([{ firstRow: 5, rows: 1 }]);
  });

  it('are parted around the batch that was running when the process died', () => {
    const task = { firstRow: 1_000, rows: 100 };
    expect(aroundKilled(task, { done: 64, running: 32 }, 32)).toEqual([
      { firstRow: 1_000, rows: 64 },
      { firstRow: 1_064, rows: 32 },
      { firstRow: 1_096, rows: 4 },
    ]);
    expect(aroundKilled(task, { done: 0, running: 32 }, 32)).toEqual([
      { firstRow: 1_000, rows: 32 },
      { firstRow: 1_032, rows: 68 },
    ]);
    expect(aroundKilled(task, { done: 96, running: 4 }, 32)).toEqual([
      { firstRow: 1_000, rows: 96 },
      { firstRow: 1_096, rows: 4 },
    ]);
  });

  it('are halved where how far they had got tells nothing', () => {
    for (const task of [
      { firstRow: 0, rows: 20 },
      { firstRow: 7, rows: 64 },
    ]) {
      expect(aroundKilled(task, { done: 0, running: 0 }, 32)).toEqual(halves(task, 32));
      expect(aroundKilled(task, { done: 0, running: task.rows }, 32)).toEqual(halves(task, 32));
      expect(aroundKilled(task, { done: 500, running: 32 }, 32)).toEqual(halves(task, 32));
    }
  });

  it('lose no row and double none, whatever their number', () => {
    for (let rows = 2; rows < 300; rows++) {
      const parts = halves({ firstRow: 7, rows }, 16);
      expect(parts.map((part) => part.rows > 0)).toEqual([true, true]);
      expect(parts[1]?.firstRow).toBe(7 + (parts[0]?.rows ?? 0));
      expect(parts.reduce((sum, part) => sum + part.rows, 0)).toBe(rows);
    }
  });
});

describe('max_errors', () => {
  const counts = (done: number, failed: number, over: object = {}) => ({
    ...{
      done,
      failed,
      forgiven: 0,
      ended: false,
      first: [{ row: 3, code: 'invalid_row', message: 'x is no number' }],
    },
    ...over,
  });

  it('lets as many pass as it says and ends the job with the next, naming the first', () => {
    expect(tooManyErrors(2, counts(10, 2))).toBeNull();
    expect(tooManyErrors(2, counts(10, 3))?.message).toBe(
      '3 of 10 rows have failed, and max_errors is 2. The first: row 3: invalid_row: x is no number',
    );
  });

  it('of a share it is one of the rows done, of a hundred at least before the end', () => {
    expect(tooManyErrors('1%', counts(1_000, 10))).toBeNull();
    expect(tooManyErrors('1%', counts(1_000, 11))?.code).toBe('too_many_errors');
    expect(tooManyErrors('1%', counts(5, 1))).toBeNull();
    expect(tooManyErrors('1%', counts(5, 1, { ended: true }))?.code).toBe('too_many_errors');
  });

  it('does not count again what its owner has let pass', () => {
    expect(tooManyErrors(2, counts(10, 5, { forgiven: 3 }))).toBeNull();
    expect(tooManyErrors(0, counts(10, 0))).toBeNull();
  });
});
