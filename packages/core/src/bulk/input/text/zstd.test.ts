/** Frames of zstd of every kind, in steps of every size, against the zstd program; check sums are looked at. */
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { ZstdUnpacker } from './zstd-unpacker.js';

const pack = (content: Buffer, ...flags: string[]): Buffer =>
  execFileSync('zstd', ['-q', '-c', ...flags], { input: content, maxBuffer: 1e9 });

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

async function unpack(packed: Uint8Array, step: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  const unpacker = new ZstdUnpacker((bytes) => parts.push(bytes));
  for (let at = 0; at < packed.length; at += step) await unpacker.push(packed.subarray(at, at + step));
  await unpacker.finish();
  return Buffer.concat(parts);
}

const SIZES = [0, 1, 5, 8, 31, 32, 33, 63, 100, 4_096, 300_000];

describe('what the zstd program packs', () => {
  it('unpacks to the same, check sums included, in steps of any size', async () => {
    for (const size of SIZES)
      for (const flags of [['-1'], ['-19'], ['--no-check'], ['--fast=5']]) {
        const content = sample(size);
        const packed = pack(content, ...flags);
        for (const step of [1 + (size % 7), 1_000, packed.length + 1])
          expect((await unpack(packed, step)).equals(content)).toBe(true);
      }
  });

  it('may be several frames, with others between them that are skipped', async () => {
    const skipped = Buffer.concat([Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0]), Buffer.from('abc')]);
    const empty = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]);
    const all = [
      skipped,
      pack(sample(5_000)),
      empty,
      pack(sample(10), '--no-check'),
      skipped,
      pack(sample(0)),
    ];
    const expected = Buffer.concat([sample(5_000), sample(10)]);
    for (const step of [1, 3, 100, 1e6])
      expect((await unpack(Buffer.concat(all), step)).equals(expected)).toBe(true);
  });
});

describe('damage', () => {
  const packed = pack(sample(50_000));

  it('anywhere is found: by the check sum where by nothing else', async () => {
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
    for (const end of [1, 3, 4, 5, 9, 100, packed.length - 5, packed.length - 1])
      await expect(unpack(packed.subarray(0, end), 4_096)).rejects.toThrow('the last frame has no end');
    await expect(unpack(Buffer.concat([packed, Buffer.from('x')]), 4_096)).rejects.toThrow('has no end');
    await expect(unpack(Buffer.concat([packed, Buffer.from('rest')]), 4_096)).rejects.toThrow(
      'something else',
    );
  });
});
