/**
 * The growing file that holds the parts of an output while a job runs. Only what append() has resolved with is in it: a
 * write that fails is cut off again. Not its own memory: the journal tells where it ends after a crash.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { RemudaError } from '../../errors.js';
import { diskFault, onDisk } from './disk-faults.js';
import { writeWhole } from './file-sink.js';

export interface PartPlace {
  offset: number;
  length: number;
}

export class DataFile {
  readonly path: string;
  readonly #file: FileHandle;
  #size: number;
  /** Appends one behind the other. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(path: string, file: FileHandle, size: number) {
    this.path = path;
    this.#file = file;
    this.#size = size;
  }

  /** Makes the file where it is not there. */
  static async open(path: string): Promise<DataFile> {
    return onDisk(path, async () => {
      const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o644);
      return new DataFile(path, file, (await file.stat()).size);
    });
  }

  /** Bytes of all parts. */
  get size(): number {
    return this.#size;
  }

  /** Durable only after sync(). @throws RemudaError disk_full: the file is then as it was before */
  append(bytes: Uint8Array): Promise<PartPlace> {
    return this.#inTurn(async () => {
      const offset = this.#size;
      try {
        await writeWhole(this.#file, bytes, offset);
      } catch (error) {
        await this.#file.truncate(offset).catch(() => {});
        throw await diskFault(this.path, error);
      }
      this.#size = offset + bytes.length;
      return { offset, length: bytes.length };
    });
  }

  /** What was appended before survives a loss of power. @throws RemudaError disk_full */
  sync(): Promise<void> {
    return onDisk(this.path, () => this.#file.datasync());
  }

  /** Cuts off what the journal does not know. @throws RemudaError invalid_file: the file is shorter than that */
  truncate(size: number): Promise<void> {
    return this.#inTurn(async () => {
      if (size > this.#size)
        throw new RemudaError(
          'invalid_file',
          `${this.path} holds ${this.#size} bytes, and ${size} were written: it was changed from outside, or lost with the disk`,
          { path: this.path, bytes: this.#size, expected: size },
        );
      await this.#file.truncate(size);
      this.#size = size;
    });
  }

  /** @throws RemudaError invalid_file: the file does not reach that far */
  async read({ offset, length }: PartPlace): Promise<Uint8Array> {
    const bytes = Buffer.allocUnsafeSlow(length);
    for (let done = 0; done < length; ) {
      const { bytesRead } = await this.#file.read(bytes, done, length - done, offset + done);
      if (bytesRead === 0)
        throw new RemudaError(
          'invalid_file',
          `${this.path} ends at byte ${offset + done}, in the middle of a part`,
          {
            path: this.path,
          },
        );
      done += bytesRead;
    }
    return bytes;
  }

  async close(): Promise<void> {
    await this.#last.catch(() => {});
    await this.#file.close();
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work, work);
    this.#last = mine.catch(() => {});
    return mine;
  }
}
