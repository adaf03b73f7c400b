/** Parts of all lives as one output, and their errors as one file: read where they lie, in the order that is wanted. */
import { type FileHandle, open, stat } from 'node:fs/promises';
import type { ByteSink, OutputEncoder, StoredPart } from '../output/bulk-output.js';
import type { Extent } from './journal-entries.js';
import { readJournal } from './journal-entries.js';
import type { Part } from './ledger.js';
import type { WorkFile, WorkFolder } from './work-folder.js';

const COPY_BYTES = 1024 * 1024;

export interface JoinOptions {
  folder: WorkFolder;
  parts: readonly Part[];
  /** Asked between parts: throws where the work is to stop. */
  goOn(): void;
}

export async function joinOutput(
  { folder, parts, goOn }: JoinOptions,
  encoder: OutputEncoder,
  sink: ByteSink,
): Promise<void> {
  const files = new LifeFiles(folder);
  try {
    await encoder.join({ [Symbol.asyncIterator]: () => storedParts(files, parts, goOn) }, sink);
  } finally {
    await files.close();
  }
}

async function* storedParts(
  files: LifeFiles,
  parts: readonly Part[],
  goOn: () => void,
): AsyncGenerator<StoredPart> {
  for (const part of parts) {
    goOn();
    const meta = await files.metaOf(part);
    yield {
      firstRow: part.firstRow,
      rows: part.rows,
      length: part.data.length,
      ...(meta === undefined ? {} : { meta }),
      read: () => files.read('data', part.epoch, part.data),
    };
  }
}

/**
 * The epoch of the data file that is the output as it lies: its head, and then all parts in order with nothing between
 * or behind them. null: they must be joined.
 */
export async function wholeFile(
  { folder, parts }: Pick<JoinOptions, 'folder' | 'parts'>,
  { head }: Pick<OutputEncoder, 'head'>,
): Promise<number | null> {
  const [first] = parts;
  if (!head || !first) return null;
  let end = head.length;
  for (const { epoch, data } of parts) {
    if (epoch !== first.epoch || data.offset !== end) return null;
    end += data.length;
  }
  const { size } = await stat(folder.file('data', first.epoch));
  return size === end ? first.epoch : null;
}

export async function joinErrors({ folder, parts, goOn }: JoinOptions, sink: ByteSink): Promise<void> {
  const files = new LifeFiles(folder);
  try {
    for (const { epoch, errors } of parts) {
      if (!errors) continue;
      goOn();
      const end = errors.offset + errors.length;
      for (let offset = errors.offset; offset < end; offset += COPY_BYTES)
        await sink.write(
          await files.read('errors', epoch, { offset, length: Math.min(COPY_BYTES, end - offset) }),
        );
    }
  } finally {
    await files.close();
  }
}

/** Files of lives, opened when they are first read. */
class LifeFiles {
  readonly #folder: WorkFolder;
  readonly #open = new Map<string, Promise<FileHandle>>();

  constructor(folder: WorkFolder) {
    this.#folder = folder;
  }

  async read(kind: WorkFile, epoch: number, { offset, length }: Extent): Promise<Buffer> {
    const file = await this.#file(kind, epoch);
    const bytes = Buffer.allocUnsafe(length);
    for (let done = 0; done < length; ) {
      const { bytesRead } = await file.read(bytes, done, length - done, offset + done);
      if (bytesRead === 0)
        throw new Error(`${this.#folder.file(kind, epoch)} ends before byte ${offset + length}`);
      done += bytesRead;
    }
    return bytes;
  }

  async metaOf({ epoch, line }: Part): Promise<unknown> {
    const [found] = readJournal(await this.read('journal', epoch, line));
    if (found?.entry.k !== 'part')
      throw new Error(`${this.#folder.file('journal', epoch)} has no part at byte ${line.offset}`);
    return found.entry.meta;
  }

  async close(): Promise<void> {
    const files = await Promise.allSettled(this.#open.values());
    await Promise.all(files.map((file) => (file.status === 'fulfilled' ? file.value.close() : undefined)));
  }

  #file(kind: WorkFile, epoch: number): Promise<FileHandle> {
    const path = this.#folder.file(kind, epoch);
    const file = this.#open.get(path) ?? open(path, 'r');
    this.#open.set(path, file);
    return file;
  }
}
