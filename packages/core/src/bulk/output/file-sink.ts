/**
 * Where joined bytes go on the disk, gathered into large writes; and how a file that is whole gets its name. Under that
 * name there is never a part of it: it is written under another, made durable, and renamed.
 */
import { copyFile, type FileHandle, link, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { RemudaError } from '../../errors.js';
import type { ByteSink } from './bulk-output.js';
import { diskFault, onDisk } from './disk-faults.js';

const BUFFER_BYTES = 2 ** 20;

/** Writes all of it: a write may take less than it was given. @param position null: where the file is now */
export async function writeWhole(
  file: FileHandle,
  bytes: Uint8Array,
  position: number | null,
): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const at = position === null ? null : position + done;
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at);
    if (bytesWritten === 0) throw Object.assign(new Error('nothing could be written'), { code: 'ENOSPC' });
    done += bytesWritten;
  }
}

export class FileSink implements ByteSink {
  readonly path: string;
  readonly #file: FileHandle;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #used = 0;

  private constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  /** A new file; what was there is cut off. */
  static async open(path: string): Promise<FileSink> {
    return new FileSink(path, await onDisk(path, () => open(path, 'w')));
  }

  /** The bytes may be used again when it resolves. @throws RemudaError disk_full */
  async write(bytes: Uint8Array): Promise<void> {
    if (bytes.length > BUFFER_BYTES - this.#used) await this.#flush();
    if (bytes.length >= BUFFER_BYTES) {
      await onDisk(this.path, () => writeWhole(this.#file, bytes, null));
      return;
    }
    this.#buffer.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  /** All of it is on the disk when it resolves. @throws RemudaError disk_full */
  async close(): Promise<void> {
    try {
      await this.#flush();
      await onDisk(this.path, () => this.#file.sync());
    } finally {
      await this.#file.close();
    }
  }

  /** Gives up: the file goes away. */
  async discard(): Promise<void> {
    await this.#file.close();
    await rm(this.path, { force: true });
  }

  async #flush(): Promise<void> {
    const used = this.#used;
    this.#used = 0;
    if (used > 0) await onDisk(this.path, () => writeWhole(this.#file, this.#buffer.subarray(0, used), null));
  }
}

/**
 * Gives a file that is whole its name, durably. Safe to do again after a crash in the middle of it.
 * @throws RemudaError output_exists: something came there since, and overwriting was not asked for
 */
export async function finishFile(
  partial: string,
  path: string,
  { overwrite }: { overwrite: boolean },
): Promise<void> {
  await syncPath(partial);
  try {
    await renamed(partial, path, overwrite);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    await finishFromAfar(partial, path, overwrite);
  }
  await syncPath(dirname(path));
}

function renamed(partial: string, path: string, overwrite: boolean): Promise<void> {
  return overwrite ? rename(partial, path) : renameOntoNothing(partial, path);
}

/** Another file system: what is copied gets a name of its own there first. */
async function finishFromAfar(partial: string, path: string, overwrite: boolean): Promise<void> {
  const beside = join(dirname(path), `.${basename(path)}.remuda-partial`);
  try {
    await onDisk(beside, () => copyFile(partial, beside));
    await syncPath(beside);
    await renamed(beside, path, overwrite);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
  await rm(partial);
}

/** rename() would take the place of a file; a second name for the same file would not. */
async function renameOntoNothing(partial: string, path: string): Promise<void> {
  try {
    await link(partial, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EXDEV') throw error;
    if (code === 'EEXIST' && !(await isSameFile(partial, path))) throw outputExists(path);
    // A file system without second names, such as FAT: looked first, then renamed.
    if (code !== 'EEXIST') {
      if (await exists(path)) throw outputExists(path);
      return rename(partial, path);
    }
  }
  await rm(partial);
}

async function isSameFile(a: string, b: string): Promise<boolean> {
  const [one, other] = await Promise.all([stat(a), stat(b)]);
  return one.ino === other.ino && one.dev === other.dev;
}

export async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

export function outputExists(where: string): RemudaError {
  return new RemudaError(
    'output_exists',
    `${where} is there already: give another name, or ask to overwrite it (--overwrite, output.overwrite)`,
    { path: where },
  );
}

/** Of a folder: its names. @throws RemudaError disk_full */
export async function syncPath(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } catch (error) {
    throw await diskFault(path, error);
  } finally {
    await file.close();
  }
}
