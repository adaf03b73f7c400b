/** FP16 against the values of IEEE 754, and against its own inverse for all 65,536 bit patterns. */
import { describe, expect, it } from 'vitest';
import { fromHalfBits, toHalfBits } from './index.js';

describe('binary16', () => {
  it.each<[string, number, number]>([
    ['zero', 0, 0x0000],
    ['minus zero', -0, 0x8000],
    ['one', 1, 0x3c00],
    ['minus two', -2, 0xc000],
    ['a third', 1 / 3, 0x3555],
    ['the largest', 65_504, 0x7bff],
    ['just below halfway to infinity', 65_519.99, 0x7bff],
    ['halfway to infinity', 65_520, 0x7c00],
    ['infinity', Number.POSITIVE_INFINITY, 0x7c00],
    ['minus infinity', Number.NEGATIVE_INFINITY, 0xfc00],
    ['not a number', Number.NaN, 0x7e00],
    ['the smallest normal', 2 ** -14, 0x0400],
    ['the largest subnormal', 1023 * 2 ** -24, 0x03ff],
    ['halfway between those two, to even', 1023.5 * 2 ** -24, 0x0400],
    ['the smallest subnormal', 2 ** -24, 0x0001],
    ['half of it, to even', 2 ** -25, 0x0000],
    ['a little more than half of it', 2 ** -25 + 2 ** -60, 0x0001],
    ['one and a half of it, to even', 1.5 * 2 ** -24, 0x0002],
    ['far below', Number.MIN_VALUE, 0x0000],
    ['a tie, to even downwards', 1 + 2 ** -11, 0x3c00],
    ['a tie, to even upwards', 1 + 3 * 2 ** -11, 0x3c02],
    ['a hair above a tie, which a 32-bit float cannot hold', 1 + 2 ** -11 + 2 ** -40, 0x3c01],
    ['a carry into the exponent', 1.9999, 0x4000],
  ])('%s', (_, value, bits) => expect(toHalfBits(value).toString(16)).toBe(bits.toString(16)));

  it('gives every bit pattern back', () => {
    for (let bits = 0; bits <= 0xffff; bits++) {
      const value = fromHalfBits(bits);
      const back = toHalfBits(value);
      if (Number.isNaN(value)) expect(back).toBe(0x7e00);
      else if (back !== bits) expect.fail(`${bits.toString(16)} came back as ${back.toString(16)}`);
    }
  });

  it('rounds what lies between two neighbours to the nearer one', () => {
    for (let bits = 0; bits < 0x7bff; bits++) {
      const [low, high] = [fromHalfBits(bits), fromHalfBits(bits + 1)];
      const step = high - low;
      const even = bits % 2 === 0 ? bits : bits + 1;
      const rounded = [low + step * 0.4999999, low + step * 0.5, low + step * 0.5000001].map(toHalfBits);
      if (rounded.join() !== [bits, even, bits + 1].join()) expect.fail(`near ${low}: ${rounded.join()}`);
    }
  });
});
