/** Files that a runner reads from, kept open between chunks: the few last ones, and none that nobody has read for a while. */
import { RemudaError } from '../../../errors.js';
import type { ChunkSource } from '../../chunk.js';
import { TextFile } from './text-file.js';

const MOST_OPEN = 8;
const IDLE_MS = 30_000;

interface Entry {
  file: Promise<TextFile>;
  readers: number;
  idle: NodeJS.Timeout | null;
  /** Nobody may take it up any more; the last reader closes it. */
  dropped: boolean;
}

export class OpenFiles {
  /** The one read last stands last. */
  readonly #entries = new Map<string, Entry>();

  /** @throws RemudaError source_unreadable where the file is not there, or is not the one that was seen */
  async use<T>(source: ChunkSource, work: (file: TextFile) => Promise<T>): Promise<T> {
    const entry = this.#entryOf(source.path);
    try {
      const file = await entry.file;
      await checkSame(file, source);
      return await work(file);
    } catch (error) {
      this.#drop(source.path, entry);
      throw unreadable(source.path, error);
    } finally {
      entry.readers -= 1;
      this.#rest(source.path, entry);
    }
  }

  async close(): Promise<void> {
    const entries = [...this.#entries];
    for (const [path, entry] of entries) this.#drop(path, entry);
    await Promise.all(entries.map(([, { file, readers }]) => (readers === 0 ? closed(file) : undefined)));
  }

  #entryOf(path: string): Entry {
    const entry = this.#entries.get(path) ?? {
      file: TextFile.open(path),
      readers: 0,
      idle: null,
      dropped: false,
    };
    if (entry.idle) clearTimeout(entry.idle);
    entry.idle = null;
    entry.readers += 1;
    this.#entries.delete(path);
    this.#entries.set(path, entry);
    for (const [other, { readers }] of this.#entries) {
      if (this.#entries.size <= MOST_OPEN) break;
      if (readers === 0) this.#closeIdle(other);
    }
    return entry;
  }

  #rest(path: string, entry: Entry): void {
    if (entry.readers > 0) return;
    if (entry.dropped) void closed(entry.file);
    else {
      entry.idle = setTimeout(() => this.#closeIdle(path), IDLE_MS);
      entry.idle.unref();
    }
  }

  #closeIdle(path: string): void {
    const entry = this.#entries.get(path);
    if (!entry || entry.readers > 0) return;
    this.#drop(path, entry);
    void closed(entry.file);
  }

  #drop(path: string, entry: Entry): void {
    entry.dropped = true;
    if (entry.idle) clearTimeout(entry.idle);
    if (this.#entries.get(path) === entry) this.#entries.delete(path);
  }
}

async function checkSame(file: TextFile, { bytes, mtimeMs }: ChunkSource): Promise<void> {
  const same = file.source.bytes === bytes && file.source.mtimeMs === mtimeMs;
  if (same && !(await file.isChanged())) return;
  throw new Error(
    `it is not the file that was seen (${file.bytes} bytes of ${new Date(file.source.mtimeMs).toISOString()}, expected ${bytes} of ${new Date(mtimeMs).toISOString()})`,
  );
}

function unreadable(path: string, error: unknown): RemudaError {
  if (error instanceof RemudaError && error.code === 'source_unreadable') return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new RemudaError(
    'source_unreadable',
    `${path} cannot be read by this worker: ${reason}`,
    {},
    { cause: error },
  );
}

async function closed(file: Promise<TextFile>): Promise<void> {
  await file.then((opened) => opened.close()).catch(() => undefined);
}
