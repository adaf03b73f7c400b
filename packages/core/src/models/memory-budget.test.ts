import { describe, expect, it } from 'vitest';
import { type Occupant, parseBudgets, roomFor, showBytes } from './memory-budget.js';

const occupant = (key: string, bytes: number, lastUsedAt: number, evictable = true): Occupant => ({
  key,
  bytes,
  lastUsedAt,
  evictable,
});

describe('room for a version', () => {
  it('is always there without a budget', () => {
    expect(roomFor(null, [occupant('a', 1e12, 0)], 1e12)).toEqual({ fits: true, evict: [] });
  });

  it('needs nobody to go where it fits to the byte', () => {
    expect(roomFor(100, [occupant('a', 60, 0)], 40)).toEqual({ fits: true, evict: [] });
  });

  it('is made by the least recently used, as many as it takes', () => {
    const held = [occupant('new', 30, 9), occupant('old', 30, 1), occupant('middle', 30, 5)];
    expect(roomFor(100, held, 20)).toEqual({ fits: true, evict: ['old'] });
    expect(roomFor(100, held, 60)).toEqual({ fits: true, evict: ['old', 'middle'] });
  });

  it('is not made by what is pinned or in use, and then says what is missing', () => {
    const held = [occupant('pinned', 60, 0, false), occupant('idle', 30, 5)];
    expect(roomFor(100, held, 40)).toEqual({ fits: true, evict: ['idle'] });
    expect(roomFor(100, held, 50)).toEqual({ fits: false, missing: 10, held: 90 });
  });
});

describe('budgets by device', () => {
  it('are read with their units', () => {
    expect([...parseBudgets(' cpu=2GiB, cuda:0=1.5MiB,')]).toEqual([
      ['cpu', 2 ** 31],
      ['cuda:0', 1.5 * 2 ** 20],
    ]);
    expect(parseBudgets('').size).toBe(0);
  });

  it('that make no sense are refused, naming the part', () => {
    for (const part of ['cpu', 'cpu=2', 'cpu=2GB', '=2GiB', 'cpu=-1GiB']) {
      expect(() => parseBudgets(`cuda:1=1GiB,${part}`)).toThrow(`"${part}" is not DEVICE=AMOUNT`);
    }
  });
});

it('bytes are shown as people say them', () => {
  expect([showBytes(3 * 2 ** 29), showBytes(640 * 2 ** 20)]).toEqual(['1.5 GiB', '640.0 MiB']);
});
