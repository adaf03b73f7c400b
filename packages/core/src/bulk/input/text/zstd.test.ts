/** Frames of zstd of every kind, in steps of every size; check sums are looked at. */
import { describe, expect, it } from 'vitest';
import { zstdFrame } from '../zstd.fixture.js';
import { Xxh64 } from './xxh64.js';
import { ZstdUnpacker } from './zstd-unpacker.js';

/** Compresses badly, and not at all, and very well. */
function sample(bytes: number): Buffer {
  let state = bytes + 1;
  return Buffer.from(
    Uint8Array.from({ length: bytes }, (_, i) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      const part = i >> 12;
      return part % 3 === 0 ? state >>> 24 : part % 3 === 1 ? (state >>> 28) + 97 : 65;
    }),
  );
}

/** What the zstd program (1.5) writes behind the frame of a sample, by its size. */
const SUMS: Readonly<Record<number, string>> = {
  0: '99e9d851',
  1: 'c853cec3',
  5: 'e982203a',
  8: '9d4f7540',
  31: 'a3e1f426',
  32: '4391701b',
  33: 'f2b7aa24',
  63: '57d3df2f',
  100: '58bf62e1',
  4096: '0261beff',
  50000: '6536a159',
  300000: '81291c7c',
};
const SIZES = Object.keys(SUMS).map(Number);

async function unpack(packed: Uint8Array, step: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  const unpacker = new ZstdUnpacker((bytes) => parts.push(bytes));
  for (let at = 0; at < packed.length; at += step) await unpacker.push(packed.subarray(at, at + step));
  await unpacker.finish();
  return Buffer.concat(parts);
}

describe('check sums', () => {
  it('are those of the zstd program, in pieces of any size', () => {
    for (const size of SIZES)
      for (const step of [1 + (size % 7), 31, 32, 1_000, size + 1]) {
        const content = sample(size);
        const hash = new Xxh64();
        for (let at = 0; at < size; at += step) hash.update(content.subarray(at, at + step));
        const sum = Buffer.alloc(4);
        sum.writeUInt32LE(hash.low32());
        expect(sum.toString('hex')).toBe(SUMS[size]);
      }
  });
});

describe('frames', () => {
  it('unpack to what was packed, with a check sum or without, in steps of any size', async () => {
    for (const size of SIZES)
      for (const level of [1, 9])
        for (const checksum of [null, Buffer.from(SUMS[size] as string, 'hex')]) {
          const content = sample(size);
          const packed = await zstdFrame(content, { level, checksum });
          for (const step of [size > 10_000 ? 997 : 1 + (size % 7), packed.length + 1])
            expect((await unpack(packed, step)).equals(content)).toBe(true);
        }
  });

  it('may be several, with others between them that are skipped', async () => {
    const skipped = Buffer.concat([Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0]), Buffer.from('abc')]);
    const empty = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]);
    const [large, small, none] = [
      await zstdFrame(sample(5_000)),
      await zstdFrame(sample(10), { checksum: null }),
      await zstdFrame(sample(0)),
    ];
    const all = Buffer.concat([skipped, large, empty, small, skipped, none]);
    const expected = Buffer.concat([sample(5_000), sample(10)]);
    for (const step of [1, 3, 100, 1e6]) expect((await unpack(all, step)).equals(expected)).toBe(true);
  });
});

describe('damage', () => {
  it('anywhere is found: by the check sum where by nothing else', async () => {
    const packed = await zstdFrame(sample(50_000));
    for (let at = 12; at < packed.length; at += 997) {
      const broken = Buffer.from(packed);
      broken[at] = (broken[at] as number) ^ 0x10;
      await expect(unpack(broken, 4_096)).rejects.toThrow();
    }
    const sum = Buffer.from(packed);
    sum[sum.length - 1] = (sum[sum.length - 1] as number) ^ 1;
    await expect(unpack(sum, 4_096)).rejects.toThrow('the check sum of frame 1 is not that of its content');
  });

  it('by a cut is found wherever it is, but between frames', async () => {
    const packed = await zstdFrame(sample(50_000));
    for (const end of [1, 3, 4, 5, 9, 100, packed.length - 5, packed.length - 1])
      await expect(unpack(packed.subarray(0, end), 4_096)).rejects.toThrow('the last frame has no end');
    await expect(unpack(Buffer.concat([packed, Buffer.from('x')]), 4_096)).rejects.toThrow('has no end');
    await expect(unpack(Buffer.concat([packed, Buffer.from('rest')]), 4_096)).rejects.toThrow(
      'something else',
    );
  });
});
