/**
 * Text of an output compressed part by part: gzip members and zstd frames may stand one behind the other, and readers
 * take them as one stream. The same text gives the same bytes, whenever and wherever it is compressed.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { BulkCompression } from '@remuda/schemas';

/** Of numbers as text higher ones take two to four times as long, for a twentieth less. */
const GZIP_LEVEL = 3;

const gzipped = promisify(gzip);

export async function compress(bytes: Uint8Array, compression: BulkCompression): Promise<Uint8Array> {
  if (compression === 'none') return bytes;
  return compression === 'gzip' ? gzipped(bytes, { level: GZIP_LEVEL }) : zstd(bytes);
}

/** The compressor holds a frame in memory of its own, which it never gives back. */
const FRAME_BYTES = 4 * 2 ** 20;
const ZSTD_LEVEL = 3;

async function zstd(bytes: Uint8Array): Promise<Uint8Array> {
  const { compress: frameOf } = await openZstd();
  const frames: Uint8Array[] = [];
  let from = 0;
  do {
    frames.push(frameOf(Buffer.from(bytes.subarray(from, from + FRAME_BYTES)), ZSTD_LEVEL));
    from += FRAME_BYTES;
  } while (from < bytes.length);
  return Buffer.concat(frames);
}

type Zstd = typeof import('@bokuweb/zstd-wasm');
let loading: Promise<Zstd> | undefined;

/** Only who wants it pays for it. Once a process: another init() would take its memory from who has it. */
export function openZstd(): Promise<Zstd> {
  loading ??= import('@bokuweb/zstd-wasm').then(async (zstdWasm) => {
    await zstdWasm.init();
    return zstdWasm;
  });
  return loading;
}
