/**
 * gzip and zstd as a stream: packed bytes go in step by step, and what a step gives comes out before its fault does, so
 * that all that was readable is read. Several members or frames behind one another are one text.
 */
import { createGunzip, type Gunzip } from 'node:zlib';
import { Decompress } from 'fzstd';

export interface Unpacker {
  /** Takes packed bytes. What they give goes to the sink. @throws Error where they are not what was expected */
  push(packed: Uint8Array): Promise<void>;
  /** @throws Error where the data has not come to its end */
  finish(): Promise<void>;
  close(): void;
}

export type UnpackedSink = (bytes: Buffer) => void;

export type Compression = 'gzip' | 'zstd';

export const MAGIC: Readonly<Record<Compression, Buffer>> = {
  gzip: Buffer.from([0x1f, 0x8b]),
  zstd: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]),
};

export function createUnpacker(compression: Compression, sink: UnpackedSink): Unpacker {
  return compression === 'gzip' ? new GzipUnpacker(sink) : new ZstdUnpacker(sink);
}

const OUTPUT_BYTES = 64 * 1024;

class GzipUnpacker implements Unpacker {
  readonly #stream: Gunzip;
  /** Rejects when the data is broken: what is being written then is never answered. */
  readonly #broken: Promise<never>;

  constructor(sink: UnpackedSink) {
    this.#stream = createGunzip({ chunkSize: OUTPUT_BYTES });
    this.#stream.on('data', sink);
    this.#broken = new Promise((_, reject) => this.#stream.on('error', reject));
    this.#broken.catch(() => undefined);
  }

  async push(packed: Uint8Array): Promise<void> {
    const taken = new Promise<void>((resolve) => {
      this.#stream.write(packed, (error) => (error ? undefined : resolve()));
    });
    await Promise.race([taken, this.#broken]);
  }

  async finish(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#stream.once('end', resolve));
    this.#stream.end();
    await Promise.race([ended, this.#broken]);
  }

  close(): void {
    this.#stream.destroy();
  }
}

/** What is behind an empty push is an end; of a check sum at the end of a frame nothing is made. */
class ZstdUnpacker implements Unpacker {
  readonly #stream: Decompress;

  constructor(sink: UnpackedSink) {
    this.#stream = new Decompress((bytes) => {
      // Its memory is used again by the next block.
      if (bytes.length > 0) sink(Buffer.from(bytes));
    });
  }

  async push(packed: Uint8Array): Promise<void> {
    this.#stream.push(packed);
  }

  async finish(): Promise<void> {
    this.#stream.push(new Uint8Array(0), true);
  }

  close(): void {}
}
