/**
 * The bytes of a text at any offset, whatever lies between: nothing (PlainText, here) or a compression
 * (unpacked-text.ts). Offsets count what lies behind the compression.
 */
import { RemudaError } from '../../../errors.js';
import type { TextFile } from './text-file.js';

export interface TextSource {
  /**
   * Bytes from an offset on, as many as are at hand and at least one; empty at the end. Good until the next call.
   * @throws DamagedTextError where the compression goes no further; RemudaError invalid_file where the file has changed
   */
  at(offset: number): Promise<Buffer>;
  /** What lies before is not asked for again, unless somebody goes back a long way. */
  release(before: number): void;
  /** Where in the file an offset lies, as far as that is known. */
  packedAt(offset: number): number;
  close(): Promise<void>;
}

/** The compression is cut off or broken. */
export class DamagedTextError extends Error {
  override readonly name = 'DamagedTextError';
  constructor(
    readonly reason: string,
    /** Byte of the file that was reached. */
    readonly byte: number,
  ) {
    super(reason);
  }
}

const WINDOW_BYTES = 1 << 20;

export class PlainText implements TextSource {
  readonly #file: TextFile;
  #window: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(file: TextFile) {
    this.#file = file;
  }

  async at(offset: number): Promise<Buffer> {
    if (offset < this.#start || offset >= this.#start + this.#window.length) {
      if (await this.#file.isChanged()) throw changed(this.#file.path);
      this.#window = await this.#file.read(offset, offset + WINDOW_BYTES);
      this.#start = offset;
    }
    return offset === this.#start ? this.#window : this.#window.subarray(offset - this.#start);
  }

  release(): void {}

  packedAt(offset: number): number {
    return Math.min(offset, this.#file.bytes);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

export function changed(path: string): RemudaError {
  return new RemudaError(
    'invalid_file',
    `${path} was written to while it was read, so its rows are not those that were counted; start the job anew with a file that stays as it is`,
  );
}
