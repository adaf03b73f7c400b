/** What is compressed comes back, by the reader of others. */
import { snappyUncompress } from 'hyparquet';
import { describe, expect, it } from 'vitest';
import { snappy } from './snappy.js';

function restored(packed: Uint8Array, length: number): Uint8Array {
  const out = new Uint8Array(length);
  snappyUncompress(packed, out);
  return out;
}

function noise(length: number, seed = 1): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
}

const long = noise(3_000);
const CASES: [name: string, bytes: Uint8Array][] = [
  ['one byte', Uint8Array.of(7)],
  ['fewer bytes than are searched', noise(14)],
  ['noise', noise(200_000)],
  ['zeros', new Uint8Array(200_000)],
  ['numbers that count up', new Uint8Array(Uint32Array.from({ length: 50_000 }, (_, i) => i).buffer)],
  ['what comes again far behind', Buffer.concat([long, noise(60_000, 2), long, long.subarray(5)])],
  [
    'stretches of every length',
    Buffer.concat(Array.from({ length: 150 }, (_, i) => Buffer.alloc(i, `${i}-ab`))),
  ],
  ['a block and a byte', Buffer.concat([new Uint8Array(65_536), Uint8Array.of(1)])],
];

describe('compressed by Snappy', () => {
  it.each(CASES)('%s come back', (_, bytes) => {
    expect(Buffer.from(restored(snappy(bytes), bytes.length)).equals(bytes)).toBe(true);
  });

  it('noise hardly grows, and repetition shrinks', () => {
    expect(snappy(noise(200_000)).length).toBeLessThan(200_100);
    expect(snappy(new Uint8Array(200_000)).length).toBeLessThan(12_000);
  });
});
