/**
 * The disk side of the file store. A content that has its name is whole: it was written under another one, synced and
 * renamed, and its facts were put beside it before. So the disk alone says which files there are, and Redis can be lost.
 *
 *   incoming/<random>.partial       what is just coming
 *   files/<xx>/file-….json          facts; without a content they are nothing
 *   files/<xx>/file-…               content
 */
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { BulkFileId } from '@remuda/schemas';
import { RemudaError } from '../../errors.js';
import { parseStored, type StoredFile } from './stored-file.js';
import { explainDisk, syncFolder, writeAll, writeWhole } from './write-whole.js';

/** A stream that comes writes all the time: what has stood still for that long belongs to a process that has died. */
const LEFTOVER_AFTER_MS = 3_600_000;

export interface FileFolderOptions {
  root: string;
  /** Makes the file that takes a stream. Default: a new one of that name. */
  openNew?: (path: string) => ReturnType<typeof open>;
}

export interface Incoming {
  path: string;
  bytes: number;
}

export class FileFolder {
  readonly root: string;
  readonly #openNew: (path: string) => ReturnType<typeof open>;

  constructor({ root, openNew = (path) => open(path, 'wx') }: FileFolderOptions) {
    this.root = resolve(root);
    this.#openNew = openNew;
  }

  /** Whether anything was ever stored here. */
  async exists(): Promise<boolean> {
    return (await sizeOrNone(this.root)) !== undefined;
  }

  /** @throws RemudaError file_not_found for what cannot be the id of a file: it never becomes a path */
  pathOf(id: string): string {
    if (!BulkFileId.safeParse(id).success) throw noSuchFile(id);
    return join(this.root, 'files', id.slice(-2), id);
  }

  /** Takes a stream to its end, holding one piece of it at a time. @throws RemudaError payload_too_large, disk_full */
  async take(content: Readable, mostBytes: number): Promise<Incoming> {
    const folder = join(this.root, 'incoming');
    await mkdir(folder, { recursive: true });
    const path = join(folder, `${randomUUID()}.partial`);
    const handle = await this.#openNew(path);
    let bytes = 0;
    try {
      for await (const piece of content as AsyncIterable<Uint8Array>) {
        bytes += piece.byteLength;
        if (bytes > mostBytes) throw tooLarge(mostBytes);
        await writeAll(handle, piece);
      }
      await handle.sync();
    } catch (error) {
      await rm(path, { force: true });
      throw await explainDisk(error, path, bytes);
    } finally {
      await handle.close();
    }
    return { path, bytes };
  }

  /** What was taken is not wanted after all. */
  async drop(path: string): Promise<void> {
    await rm(path, { force: true });
  }

  /** Bytes of a whole file that is to be kept. */
  async sizeAt(path: string): Promise<number> {
    return (await stat(path)).size;
  }

  /** Gives a whole file its name, its facts first. From then on it is there, whatever becomes of this process. */
  async keep(path: string, file: StoredFile): Promise<void> {
    const target = this.pathOf(file.id);
    const folder = dirname(target);
    try {
      await mkdir(folder, { recursive: true });
      await this.#writeFacts(file);
      await rename(path, target);
      await syncFolder(folder);
    } catch (error) {
      throw await explainDisk(error, target, file.bytes);
    }
  }

  async #writeFacts(file: StoredFile): Promise<void> {
    const path = factsPath(this.pathOf(file.id));
    const draft = `${path}.${randomUUID()}.partial`;
    await writeWhole(draft, JSON.stringify(file));
    await rename(draft, path);
  }

  /** The content goes first: what has none is no file any more. */
  async remove(id: string): Promise<void> {
    const path = this.pathOf(id);
    await rm(path, { force: true });
    await rm(factsPath(path), { force: true });
  }

  /** Bytes of a content; undefined: there is none. */
  async sizeOf(id: string): Promise<number | undefined> {
    return sizeOrNone(this.pathOf(id));
  }

  /** What the disk itself knows of a file; undefined: it has none of that id. */
  async factsOf(id: string): Promise<StoredFile | undefined> {
    const path = this.pathOf(id);
    const bytes = await sizeOrNone(path);
    if (bytes === undefined) return undefined;
    const text = await readFile(factsPath(path), 'utf8').catch(() => '');
    const file = parseStored(text);
    return file?.id === id ? { ...file, bytes } : undefined;
  }

  /** @param range bytes [from, to) @throws RemudaError file_not_found */
  async open(id: string, range?: { from: number; to: number }): Promise<Readable> {
    const handle = await open(this.pathOf(id), 'r').catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? noSuchFile(id) : error;
    });
    if (range && range.to <= range.from) {
      await handle.close();
      return Readable.from([]);
    }
    const part = range === undefined ? {} : { start: range.from, end: range.to - 1 };
    return createReadStream('', { fd: handle, ...part });
  }

  /** Ids of all contents, a folder at a time. */
  async *ids(): AsyncGenerator<string[]> {
    const root = join(this.root, 'files');
    for (const folder of await namesIn(root)) {
      const names = await namesIn(join(root, folder));
      yield names.filter((name) => BulkFileId.safeParse(name).success);
    }
  }

  /** Takes away what processes that died had begun. Returns how many there were. @param now Unix milliseconds */
  async removeLeftovers(now: number): Promise<number> {
    const folder = join(this.root, 'incoming');
    let removed = 0;
    for (const name of await namesIn(folder)) {
      const path = join(folder, name);
      const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: now }));
      if (now - mtimeMs < LEFTOVER_AFTER_MS) continue;
      await rm(path, { force: true });
      removed++;
    }
    return removed;
  }
}

export function noSuchFile(id: string): RemudaError {
  return new RemudaError(
    'file_not_found',
    `there is no file ${id.slice(0, 100)}: it never was, it was deleted, or its time has passed; GET /v1/files lists those there are`,
  );
}

function tooLarge(mostBytes: number): RemudaError {
  return new RemudaError(
    'payload_too_large',
    `file: expected at most ${mostBytes} bytes, received more: send it in parts, compress it, or raise REMUDA_API_MAX_FILE_BYTES`,
  );
}

const factsPath = (path: string): string => `${path}.json`;

async function sizeOrNone(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
