/**
 * gzip and zstd as a stream: packed bytes go in step by step, and what a step gives comes out before its fault does, so
 * that all that was readable is read. Several members or frames behind one another are one text.
 */
import { createGunzip, type Gunzip } from 'node:zlib';
import { ZSTD_MAGIC } from './zstd-frames.js';
import { ZstdUnpacker } from './zstd-unpacker.js';

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
  zstd: ZSTD_MAGIC,
};

export function createUnpacker(compression: Compression, sink: UnpackedSink): Unpacker {
  return compression === 'gzip' ? new GzipUnpacker(sink) : new ZstdUnpacker(sink);
}

const OUTPUT_BYTES = 64 * 1024;

/** Behind the last member there may be zeros, as tapes and disks leave them: they end the stream before its input ends. */
class GzipUnpacker implements Unpacker {
  readonly #stream: Gunzip;
  #fault: Error | null = null;
  #ended = false;
  /** Of the step under way: broken data answers no write. */
  #reject: (error: Error) => void = () => undefined;

  constructor(sink: UnpackedSink) {
    this.#stream = createGunzip({ chunkSize: OUTPUT_BYTES });
    this.#stream.on('data', sink);
    this.#stream.on('error', (error) => {
      this.#fault = error;
      this.#reject(error);
    });
  }

  async push(packed: Uint8Array): Promise<void> {
    const before = this.#stream.bytesWritten;
    if (!this.#ended) await this.#step((done) => this.#write(packed, done));
    if (this.#ended && packed.subarray(this.#stream.bytesWritten - before).some((byte) => byte !== 0))
      throw new Error('there is something else behind its end');
  }

  async finish(): Promise<void> {
    if (!this.#ended) await this.#step((done) => this.#stream.once('end', done).end());
  }

  close(): void {
    this.#stream.destroy();
  }

  /** What the stream does not want any more, it never answers. */
  #write(packed: Uint8Array, done: () => void): void {
    const ended = () => {
      this.#ended = true;
      done();
    };
    this.#stream.once('end', ended);
    this.#stream.write(packed, (error) => {
      this.#stream.off('end', ended);
      if (!error) done();
    });
  }

  #step(work: (done: () => void) => void): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      if (this.#fault) reject(this.#fault);
      this.#reject = reject;
      work(resolve);
    });
  }
}
