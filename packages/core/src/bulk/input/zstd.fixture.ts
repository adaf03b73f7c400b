/** Frames of zstd as its program makes them: with a check sum behind each, which the compressor at hand leaves out. */
import { openZstd } from '../output/compress.js';
import { Xxh64 } from './text/xxh64.js';

const HAS_CHECKSUM = 4;

export async function zstdFrame(
  content: Uint8Array,
  { level = 3, checksum = sumOf(content) }: { level?: number; checksum?: Uint8Array | null } = {},
): Promise<Buffer> {
  const { compress } = await openZstd();
  const frame = Buffer.from(compress(Buffer.from(content), level));
  if (checksum === null) return frame;
  frame[4] = (frame[4] as number) | HAS_CHECKSUM;
  return Buffer.concat([frame, checksum]);
}

function sumOf(content: Uint8Array): Buffer {
  const hash = new Xxh64();
  hash.update(content);
  const sum = Buffer.alloc(4);
  sum.writeUInt32LE(hash.low32());
  return sum;
}
