/** A text file that lies on a disk, as it was when it was opened: another state of it is an error, not other rows. */
import { type FileHandle, open } from 'node:fs/promises';
import { RemudaError } from '../../../errors.js';
import type { ChunkSource } from '../../chunk.js';

export class TextFile {
  readonly source: ChunkSource;
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle, source: ChunkSource) {
    this.#handle = handle;
    this.source = source;
  }

  /** @throws RemudaError file_not_found, invalid_file */
  static async open(path: string): Promise<TextFile> {
    const handle = await open(path, 'r').catch((cause: NodeJS.ErrnoException) => {
      throw unreadable(path, cause);
    });
    try {
      const facts = await handle.stat();
      if (facts.isDirectory())
        throw new RemudaError(
          'invalid_file',
          `${path} is a folder, where a file was expected; give the file, or format "images" for a folder of them`,
        );
      return new TextFile(handle, { path, bytes: facts.size, mtimeMs: facts.mtimeMs });
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  get path(): string {
    return this.source.path;
  }

  get bytes(): number {
    return this.source.bytes;
  }

  /** Whether it has been written to since it was opened. */
  async isChanged(): Promise<boolean> {
    const { size, mtimeMs } = await this.#handle.stat();
    return size !== this.source.bytes || mtimeMs !== this.source.mtimeMs;
  }

  /** Bytes [from, to), fewer at its end, in memory of their own. */
  async read(from: number, to: number): Promise<Buffer> {
    const wanted = Math.max(0, Math.min(to, this.bytes) - from);
    const bytes = Buffer.allocUnsafe(wanted);
    let filled = 0;
    while (filled < wanted) {
      const { bytesRead } = await this.#handle.read(bytes, filled, wanted - filled, from + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return filled === wanted ? bytes : bytes.subarray(0, filled);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

function unreadable(path: string, cause: NodeJS.ErrnoException): RemudaError {
  if (cause.code === 'ENOENT' || cause.code === 'ENOTDIR')
    return new RemudaError('file_not_found', `${path}: there is no such file; check the path`, {}, { cause });
  return new RemudaError(
    'invalid_file',
    `${path} cannot be opened: ${cause.message}; check who may read it`,
    {},
    { cause },
  );
}
