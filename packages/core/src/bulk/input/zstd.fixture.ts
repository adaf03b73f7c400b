/** Frames of zstd as its program makes them: with a check sum behind each, which the compressor at hand leaves out. */
import { compress as frameOf, init } from '@bokuweb/zstd-wasm';
import { Xxh64 } from './text/xxh64.js';

const HAS_CHECKSUM = 4;
/** Once: it begins with new memory each time. */
const ready = init();

export async function zstdFrame(
  content: Uint8Array,
  { level = 3, checksum = sumOf(content) }: { level?: number; checksum?: Uint8Array | null } = {},
): Promise<Buffer> {
  await ready;
  const frame = Buffer.from(frameOf(Buffer.from(content), level));
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
