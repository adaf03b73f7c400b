/**
 * A compressed text, read from its start to its end with a bounded part of it in memory. Going on where the last read
 * ended costs nothing; going back means to unpack from the start again, which happens once after a crash.
 */

import type { TextFile } from './text-file.js';
import { changed, DamagedTextError, type TextSource } from './text-source.js';
import { type Compression, createUnpacker, type Unpacker } from './unpackers.js';

/** Small, since it may unpack to a thousand times as much at once. */
const STEP_BYTES = 16 * 1024;

export class UnpackedText implements TextSource {
  readonly #file: TextFile;
  readonly #compression: Compression;
  #unpacker: Unpacker | null = null;
  /** Unpacked and not released, without gaps. */
  #held: Buffer[] = [];
  #heldFrom = 0;
  #end = 0;
  #released = 0;
  #packed = 0;
  #finished = false;
  #fault: DamagedTextError | null = null;

  constructor(file: TextFile, compression: Compression) {
    this.#file = file;
    this.#compression = compression;
  }

  async at(offset: number): Promise<Buffer> {
    if (this.#unpacker === null || offset < this.#heldFrom) this.#restart(offset);
    while (offset >= this.#end) {
      if (this.#fault) throw this.#fault;
      if (this.#finished) return Buffer.alloc(0);
      await this.#step();
      this.#drop();
    }
    return this.#heldAt(offset);
  }

  release(before: number): void {
    this.#released = before;
    this.#drop();
  }

  packedAt(offset: number): number {
    if (this.#end === 0) return 0;
    return Math.min(this.#file.bytes, Math.round((this.#packed * offset) / this.#end));
  }

  async close(): Promise<void> {
    this.#unpacker?.close();
    this.#held = [];
    await this.#file.close();
  }

  #restart(offset: number): void {
    this.#unpacker?.close();
    this.#unpacker = createUnpacker(this.#compression, (bytes) => {
      this.#held.push(bytes);
      this.#end += bytes.length;
    });
    this.#held = [];
    this.#heldFrom = 0;
    this.#end = 0;
    this.#packed = 0;
    this.#finished = false;
    this.#fault = null;
    this.#released = Math.min(this.#released, offset);
  }

  async #step(): Promise<void> {
    const unpacker = this.#unpacker as Unpacker;
    if (this.#packed % (STEP_BYTES * 64) === 0 && (await this.#file.isChanged()))
      throw changed(this.#file.path);
    const packed = await this.#file.read(this.#packed, this.#packed + STEP_BYTES);
    try {
      if (packed.length > 0) await unpacker.push(packed);
      else {
        await unpacker.finish();
        this.#finished = true;
      }
      this.#packed += packed.length;
    } catch (error) {
      this.#fault = new DamagedTextError(this.#reason(error, packed.length === 0), this.#packed);
    }
  }

  #reason(error: unknown, atEnd: boolean): string {
    const name = this.#compression;
    if (atEnd) return `its ${name} data is cut off`;
    return `its ${name} data is damaged (${error instanceof Error ? error.message : String(error)})`;
  }

  #drop(): void {
    for (let first = this.#held[0]; first; first = this.#held[0]) {
      if (this.#heldFrom + first.length > this.#released) return;
      this.#heldFrom += first.length;
      this.#held.shift();
    }
  }

  #heldAt(offset: number): Buffer {
    let start = this.#heldFrom;
    for (const bytes of this.#held) {
      if (offset < start + bytes.length) return bytes.subarray(offset - start);
      start += bytes.length;
    }
    throw new Error(`offset ${offset} is not held`);
  }
}
