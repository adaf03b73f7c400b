/**
 * LZ4 frames unpacked, which is how Feather files are written by default. Source: "LZ4 Frame Format Description" and
 * "LZ4 Block Format Description". Checksums are passed over: what they guard shows in the length.
 */

const MAGIC = 0x184d2204;
const UNCOMPRESSED = 0x80000000;

/** @param length of what it unpacks to. @throws where it is damaged */
export function unpackLz4(frame: Uint8Array, length: number): Uint8Array {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  if (frame.byteLength < 7 || view.getUint32(0, true) !== MAGIC) throw new Error('no LZ4 frame');
  const flags = frame[4] as number;
  const blockChecksums = (flags & 0x10) !== 0;
  // Behind the flags: the block size, the size of the content and the id of a dictionary where they are given, a checksum.
  let at = 7 + (flags & 0x08 ? 8 : 0) + (flags & 0x01 ? 4 : 0);
  const out = new Uint8Array(length);
  let filled = 0;
  for (;;) {
    const size = view.getUint32(at, true);
    at += 4;
    if (size === 0) break;
    const bytes = size & ~UNCOMPRESSED;
    const block = frame.subarray(at, at + bytes);
    if (block.byteLength < bytes) throw new Error('an LZ4 block is cut off');
    if (size >= UNCOMPRESSED) {
      out.set(block, filled);
      filled += bytes;
    } else filled = unpackBlock(block, out, filled);
    at += bytes + (blockChecksums ? 4 : 0);
  }
  if (filled !== length) throw new Error(`an LZ4 frame of ${filled} bytes, not ${length}`);
  return out;
}

/** @returns where it ends in `out` */
function unpackBlock(block: Uint8Array, out: Uint8Array, start: number): number {
  let at = 0;
  let to = start;
  const more = (length: number): number => {
    let total = length;
    for (let byte = 255; byte === 255; ) {
      byte = block[at++] ?? fail();
      total += byte;
    }
    return total;
  };
  while (at < block.length) {
    const token = block[at++] as number;
    const literals = token >> 4 === 15 ? more(15) : token >> 4;
    if (at + literals > block.length || to + literals > out.length) fail();
    for (let i = 0; i < literals; i++) out[to++] = block[at++] as number;
    if (at === block.length) break;
    const distance = (block[at] as number) | ((block[at + 1] ?? fail()) << 8);
    at += 2;
    const length = 4 + ((token & 15) === 15 ? more(15) : token & 15);
    let from = to - distance;
    if (distance === 0 || from < 0 || to + length > out.length) fail();
    // Byte by byte: a match may reach into what it writes.
    for (let i = 0; i < length; i++) out[to++] = out[from++] as number;
  }
  return to;
}

function fail(): never {
  throw new Error('a damaged LZ4 block');
}
