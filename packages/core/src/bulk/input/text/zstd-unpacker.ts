/**
 * zstd as a stream, frame by frame. The library does not look at the check sum at the end of a frame, and broken
 * literals unpack to other text without an error: so it is looked at here, where a frame has one (those that the zstd
 * program makes do).
 */
import { Decompress } from 'fzstd';
import type { UnpackedSink, Unpacker } from './unpackers.js';
import { Xxh64 } from './xxh64.js';
import { ZSTD_MAGIC, ZstdFrames } from './zstd-frames.js';

export class ZstdUnpacker implements Unpacker {
  readonly #sink: UnpackedSink;
  readonly #frames = new ZstdFrames();
  #hash = new Xxh64();
  #stream: Decompress | null = null;
  #frame = 0;

  constructor(sink: UnpackedSink) {
    this.#sink = sink;
  }

  async push(packed: Uint8Array): Promise<void> {
    for (let from = 0; from < packed.length; ) {
      const step = this.#frames.next(packed, from);
      if (step.kind !== 'skipped') this.#unpack(packed.subarray(from, step.to), step.kind === 'end');
      if (step.kind === 'end') this.#check(step.checksum);
      from = step.to;
    }
  }

  async finish(): Promise<void> {
    if (this.#frames.isInside) throw new Error('the last frame has no end');
  }

  close(): void {
    this.#stream = null;
  }

  #unpack(packed: Uint8Array, last: boolean): void {
    this.#stream ??= this.#begun();
    this.#stream.push(packed, last);
  }

  #begun(): Decompress {
    const stream = new Decompress((bytes) => this.#take(bytes));
    stream.push(ZSTD_MAGIC);
    return stream;
  }

  #take(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#hash.update(bytes);
    // Its memory is used again by the next block.
    this.#sink(Buffer.from(bytes));
  }

  #check(expected: number | null): void {
    const found = this.#hash.low32();
    this.#frame += 1;
    this.#stream = null;
    this.#hash = new Xxh64();
    if (expected !== null && found !== expected)
      throw new Error(`the check sum of frame ${this.#frame} is not that of its content`);
  }
}
