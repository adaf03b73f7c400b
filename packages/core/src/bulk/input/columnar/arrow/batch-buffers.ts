/** The buffers of one record batch: pieces of them by offset, or unpacked as a whole where they are compressed. */
import type { FileHandle } from 'node:fs/promises';
import { decompress } from 'fzstd';
import { bytesAt, damaged, type FoundMessage } from './arrow-index.js';
import { type BatchHeader, CompressionType } from './arrow-layout.js';
import { unpackLz4 } from './lz4-frame.js';

/** Says that the buffer was not worth packing. */
const NOT_PACKED = -1n;

export class BatchBuffers {
  /** Bytes of buffers that were unpacked, for the next chunk of the same batch. */
  readonly #unpacked = new Map<number, Uint8Array>();
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #body: number;

  constructor(
    path: string,
    file: FileHandle,
    readonly header: BatchHeader,
    { body }: Pick<FoundMessage, 'body'>,
  ) {
    this.#path = path;
    this.#file = file;
    this.#body = body;
  }

  /** Bytes of a buffer as far as it goes; 0: there is none, since there are no nulls, say. */
  lengthOf(buffer: number): number {
    return this.header.buffers[buffer]?.length ?? 0;
  }

  /** Bytes [from, to) of a buffer, in memory of their own that starts at a multiple of eight. */
  async bytes(buffer: number, from: number, to: number): Promise<Uint8Array> {
    if (to <= from) return new Uint8Array(0);
    const region = this.header.buffers[buffer];
    const whole = this.header.compression === null ? null : await this.#unpack(buffer);
    const length = whole ? whole.byteLength : (region?.length ?? 0);
    if (to > length) {
      throw this.damaged(buffer, `it has ${length} bytes where at least ${to} are needed`);
    }
    // Copied: the start of the piece may lie anywhere.
    if (whole) return whole.slice(from, to);
    return bytesAt(this.#file, this.#body + (region?.offset ?? 0) + from, to - from);
  }

  damaged(buffer: number, what: string): Error {
    const offset = this.#body + (this.header.buffers[buffer]?.offset ?? 0);
    return damaged(this.#path, offset, `the buffer at byte ${offset} is damaged: ${what}`);
  }

  async #unpack(buffer: number): Promise<Uint8Array> {
    const known = this.#unpacked.get(buffer);
    if (known) return known;
    const { offset, length } = this.header.buffers[buffer] ?? { offset: 0, length: 0 };
    const packed = await bytesAt(this.#file, this.#body + offset, length);
    const bytes = length === 0 ? new Uint8Array(0) : this.#unpackBytes(buffer, packed);
    this.#unpacked.set(buffer, bytes);
    return bytes;
  }

  #unpackBytes(buffer: number, packed: Buffer): Uint8Array {
    const length = packed.readBigInt64LE(0);
    const content = packed.subarray(8);
    if (length === NOT_PACKED) return content;
    try {
      const type = this.header.compression?.type;
      // A frame of zstd says itself how long it is, and the length before it is not right from every writer.
      return type === CompressionType.ZSTD ? decompress(content) : unpackLz4(content, Number(length));
    } catch (cause) {
      throw this.damaged(buffer, `it does not unpack (${cause instanceof Error ? cause.message : cause})`);
    }
  }
}
