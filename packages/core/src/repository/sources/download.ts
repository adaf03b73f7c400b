/**
 * One file from a source to the disk, streamed, and checked against what was promised. A break is gone on from where
 * it was, by this process or the next: beside the bytes stands what they are the beginning of. Bytes are written to
 * their place, never appended, so that nothing doubles.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RemudaError } from '../../errors.js';
import { networkFault } from './http-requests.js';
import type { Patience } from './patience.js';
import { invalid, type OpenedFile, type SourceFile, unavailable } from './source-files.js';

export interface DownloadTarget {
  /** Where the bytes gather. */
  partial: string;
  /** What the bytes are the beginning of. */
  state: string;
}

export interface Downloaded {
  sha256: string;
  size: number;
  /** Of the bytes that came, where the source has one. */
  etag: string | null;
}

interface PartialState {
  sha256: string | null;
  validator: string | null;
}

export interface DownloadOptions {
  patience: Patience;
  /** Bytes of the file so far; after a fresh start fewer than before. */
  onBytes(bytes: number, total: number | null): void;
  signal: AbortSignal;
  /** False: the file is not read once more where it has no sha256 to be compared with; that of the answer is empty then. */
  hashed?: boolean;
}

/**
 * The checked file is at `target.partial` afterwards.
 * @throws RemudaError source_unavailable (what came is kept), source_invalid (it is removed), internal for the disk
 */
export async function download(
  file: SourceFile,
  target: DownloadTarget,
  options: DownloadOptions,
): Promise<Downloaded> {
  await onDisk(target.partial, () => mkdir(dirname(target.partial), { recursive: true }));
  const found = await new Download(file, target, options).run();
  await rm(target.state, { force: true });
  return found;
}

class Download {
  readonly #file: SourceFile;
  readonly #target: DownloadTarget;
  readonly #options: DownloadOptions;
  #size: number | null;
  #reached = 0;
  #resumed = false;
  #etag: string | null = null;

  constructor(file: SourceFile, target: DownloadTarget, options: DownloadOptions) {
    this.#file = file;
    this.#target = target;
    this.#options = options;
    this.#size = file.size;
  }

  async run(): Promise<Downloaded> {
    await this.#gather();
    const expected = this.#file.sha256;
    if (expected === null && this.#options.hashed === false)
      return { sha256: '', size: (await stat(this.#target.partial)).size, etag: this.#etag };
    const { sha256, size } = await hashOf(this.#target.partial);
    if (expected === null || sha256 === expected) return { sha256, size, etag: this.#etag };
    await this.#discard();
    // The beginning may have been of another state of the file; the whole of it has the last word.
    if (this.#resumed) {
      this.#resumed = false;
      return this.run();
    }
    throw invalid(
      `${this.#file.address}: expected sha256 ${expected}, received ${sha256} (${size} bytes); publish the file again, or make its manifest anew`,
      { path: this.#file.path, expected, received: sha256 },
    );
  }

  async #gather(): Promise<void> {
    const { patience, signal } = this.#options;
    await patience.retried(
      () => this.#attempt(),
      signal,
      () => this.#reached,
    );
  }

  async #attempt(): Promise<void> {
    const file = this.#file;
    const begun = await this.#begun();
    // All has come already, or the file is empty: nothing has to be asked for.
    if (file.sha256 !== null && begun.offset === file.size) return this.#adopt();
    const opened = await file.open(begun, this.#options.signal);
    try {
      await this.#checkOpened(opened);
      await this.#write(opened);
    } finally {
      opened.close();
    }
  }

  /** What an earlier attempt, of this process or another, has left. */
  async #begun(): Promise<{ offset: number; validator: string | null }> {
    const anew = { offset: 0, validator: null };
    const state = await readState(this.#target.state);
    const size = await stat(this.#target.partial).then(
      (found) => found.size,
      () => 0,
    );
    const { sha256 } = this.#file;
    const known = state?.sha256 === sha256 && (sha256 !== null || state.validator !== null);
    const fits = this.#file.size === null || sha256 === null || size <= this.#file.size;
    if (!known || !fits) return anew;
    return { offset: size, validator: state.validator };
  }

  async #checkOpened({ offset, total, validator }: OpenedFile): Promise<void> {
    const { address, sha256, size, etag } = this.#file;
    if (sha256 !== null && size !== null && total !== null && total !== size) {
      await this.#discard();
      throw invalid(
        `${address}: expected ${size} bytes, the source has ${total}; publish the file again, or make its manifest anew`,
        { path: this.#file.path, expected: size, received: total },
      );
    }
    if (sha256 === null || size === null) this.#size = total;
    if (offset > 0) this.#resumed = true;
    this.#etag = etag === null ? null : validator;
  }

  async #write(opened: OpenedFile): Promise<void> {
    const handle = await onDisk(this.#target.partial, () => openForWriting(this.#target.partial));
    try {
      if (opened.offset === 0) await this.#startAnew(handle, opened.validator);
      const end = await this.#copy(opened, handle);
      await onDisk(this.#target.partial, () => handle.sync());
      if (this.#size !== null && end < this.#size)
        throw unavailable(`${this.#file.address}: broke off after ${end} of ${this.#size} bytes`);
    } finally {
      await handle.close();
    }
  }

  /** In this order: whenever the process is killed, a state never stands beside the bytes of another. */
  async #startAnew(handle: FileHandle, validator: string | null): Promise<void> {
    const { partial, state } = this.#target;
    await onDisk(state, () => rm(state, { force: true }));
    await onDisk(partial, () => handle.truncate(0));
    await onDisk(state, () => writeState(state, { sha256: this.#file.sha256, validator }));
  }

  async #copy(opened: OpenedFile, handle: FileHandle): Promise<number> {
    const { patience, onBytes, signal } = this.#options;
    const { address } = this.#file;
    const chunks = opened.body[Symbol.asyncIterator]();
    let position = opened.offset;
    onBytes(position, this.#size);
    for (;;) {
      const chunk = await patience.within(address, nextOf(chunks, address), opened.close);
      signal.throwIfAborted();
      if (chunk === undefined) return position;
      if (this.#size !== null && position + chunk.byteLength > this.#size) throw await this.#tooLong();
      await onDisk(this.#target.partial, () => writeAll(handle, chunk, position));
      position += chunk.byteLength;
      this.#reached = Math.max(this.#reached, position);
      onBytes(position, this.#size);
    }
  }

  async #tooLong(): Promise<RemudaError> {
    await this.#discard();
    return invalid(
      `${this.#file.address}: expected ${this.#size} bytes, the source sends more; publish the file again, or make its manifest anew`,
      { path: this.#file.path, expected: this.#size },
    );
  }

  async #adopt(): Promise<void> {
    const handle = await onDisk(this.#target.partial, () => openForWriting(this.#target.partial));
    // Who wrote it may have died before it was on the disk.
    await handle.sync().finally(() => handle.close());
    this.#resumed = true;
    this.#options.onBytes(this.#file.size ?? 0, this.#file.size);
  }

  async #discard(): Promise<void> {
    await rm(this.#target.partial, { force: true });
    await rm(this.#target.state, { force: true });
  }
}

async function nextOf(chunks: AsyncIterator<Uint8Array>, address: string): Promise<Uint8Array | undefined> {
  try {
    const next = await chunks.next();
    return next.done ? undefined : next.value;
  } catch (error) {
    throw networkFault(address, error);
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let written = 0;
  while (written < bytes.byteLength) {
    const { bytesWritten } = await handle.write(
      bytes,
      written,
      bytes.byteLength - written,
      position + written,
    );
    written += bytesWritten;
  }
}

/** Makes the file where it is not there, and leaves what is in it. */
async function openForWriting(path: string): Promise<FileHandle> {
  await (await open(path, 'a')).close();
  return open(path, 'r+');
}

/** sha256 and size of what is on the disk, which is what will be loaded. */
export async function hashOf(path: string): Promise<{ sha256: string; size: number }> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    hash.update(chunk);
    size += chunk.length;
  }
  return { sha256: hash.digest('hex'), size };
}

async function readState(path: string): Promise<PartialState | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as PartialState;
  } catch {
    return undefined;
  }
}

async function writeState(path: string, state: PartialState): Promise<void> {
  const temporary = `${path}.new`;
  await writeFile(temporary, JSON.stringify(state));
  await rename(temporary, path);
}

/** A fault of the disk is nothing that another try at the source would mend. */
async function onDisk<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException;
    const remedy =
      code === 'ENOSPC' || code === 'EDQUOT' ? 'make room on the disk' : 'check the folder of the cache';
    throw new RemudaError('internal', `${path} cannot be written: ${message}; ${remedy}`, {}, { cause });
  }
}
