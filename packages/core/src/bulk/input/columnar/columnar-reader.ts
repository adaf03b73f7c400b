/**
 * The runner's side of Parquet and Arrow files. Files stay open between chunks (a few of them, and not for long where
 * none is asked for), and a file is read by one chunk at a time: the next one usually goes on where it stopped.
 */
import { RemudaError } from '../../../errors.js';
import type { ChunkSource } from '../../chunk.js';
import type { Column, RowBlock } from '../../columns.js';
import type { RowReader, RowsWanted } from '../bulk-input.js';
import { decodePayload } from './columnar-payload.js';
import { checkSource, unreadable } from './columnar-source.js';
import { type ColumnarFormat, openRowFile, placesOf, type RowFile } from './row-file.js';

export interface ColumnarReaderOptions {
  /** Files that are kept open, at most. Default 4. */
  files?: number;
  /** Time after which a file that was not read is closed, in milliseconds. Default 30,000. */
  idleMs?: number;
}

export function createColumnarReader(options: ColumnarReaderOptions = {}): RowReader {
  return new ColumnarReader(options);
}

class OpenFile {
  readonly source: ChunkSource;
  readonly file: Promise<RowFile>;
  lastUsed = 0;
  /** Reads that wait or run. */
  users = 0;
  #last: Promise<unknown>;

  constructor(source: ChunkSource, format: ColumnarFormat) {
    this.source = source;
    this.file = openRowFile(source.path, format);
    this.#last = this.file.catch(() => undefined);
  }

  /** One at a time, in the order in which they were asked for. */
  read(from: number, to: number, names: readonly string[] | null): Promise<Column[]> {
    const reading = this.#last.then(async () => (await this.file).read(from, to, names));
    this.#last = reading.catch(() => undefined);
    return reading;
  }

  async close(): Promise<void> {
    await this.#last;
    await this.file.then((file) => file.close()).catch(() => undefined);
  }
}

class ColumnarReader implements RowReader {
  readonly #files = new Map<string, OpenFile>();
  readonly #most: number;
  readonly #idleMs: number;
  #sweep: NodeJS.Timeout | undefined;

  constructor({ files = 4, idleMs = 30_000 }: ColumnarReaderOptions) {
    this.#most = files;
    this.#idleMs = idleMs;
  }

  async read(order: RowsWanted, payload: Uint8Array | null): Promise<RowBlock> {
    const columns = payload ? fromPayload(payload, order) : await this.#fromFile(order);
    return { rows: order.rows, columns, failures: new Map() };
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep);
    this.#sweep = undefined;
    await Promise.all([...this.#files.keys()].map((key) => this.#forget(key)));
  }

  async #fromFile({ source, range, read, columns }: RowsWanted): Promise<Column[]> {
    if (!source || range.kind !== 'rows')
      throw new Error('a chunk of a columnar file without a range of rows');
    await checkSource(source);
    const key = `${source.path}\n${source.bytes}\n${source.mtimeMs}`;
    const open = this.#open(key, source, read.format as ColumnarFormat);
    open.users++;
    try {
      const read = await open.read(range.from, range.to, columns);
      // What was replaced while it was read may have given rows of both files.
      await checkSource(source);
      return read;
    } catch (failure) {
      await this.#forget(key);
      await checkSource(source);
      throw failure instanceof RemudaError || !isFileError(failure)
        ? failure
        : unreadable(
            source.path,
            `${source.path} cannot be read on this machine: ${failure.message}`,
            failure,
          );
    } finally {
      open.users--;
      open.lastUsed = performance.now();
    }
  }

  #open(key: string, source: ChunkSource, format: ColumnarFormat): OpenFile {
    const open = this.#files.get(key) ?? new OpenFile(source, format);
    // Last in the map: the one that was used last.
    this.#files.delete(key);
    this.#files.set(key, open);
    for (const [other, { users }] of this.#files) {
      if (this.#files.size <= this.#most) break;
      if (users === 0 && other !== key) void this.#forget(other);
    }
    this.#sweep ??= setInterval(() => this.#closeIdle(), this.#idleMs).unref();
    return open;
  }

  #closeIdle(): void {
    const before = performance.now() - this.#idleMs;
    for (const [key, { users, lastUsed }] of this.#files) {
      if (users === 0 && lastUsed <= before) void this.#forget(key);
    }
    if (this.#files.size > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }

  async #forget(key: string): Promise<void> {
    const open = this.#files.get(key);
    this.#files.delete(key);
    await open?.close();
  }
}

function fromPayload(payload: Uint8Array, { columns: names }: RowsWanted): Column[] {
  const columns = decodePayload(payload);
  if (names === null) return columns;
  const infos = columns.map(({ name, type }) => ({ name, type }));
  return placesOf('the payload of the chunk', infos, names).map((place) => columns[place] as Column);
}

function isFileError(failure: unknown): failure is NodeJS.ErrnoException {
  return failure instanceof Error && 'syscall' in failure;
}
