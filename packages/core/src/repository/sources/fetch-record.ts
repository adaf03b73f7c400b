/**
 * What a model in the cache was when it was fetched, file by file: tells a source that changed from a disk that did,
 * and stands in for the sha256 that some sources do not give.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Sha256 } from '@remuda/schemas';
import * as z from 'zod';

const RecordedFile = z.strictObject({ sha256: Sha256, etag: z.string().nullable() });
export type RecordedFile = z.infer<typeof RecordedFile>;

const Stored = z.strictObject({ files: z.record(z.string(), RecordedFile) });

export class FetchRecord {
  readonly #path: string;
  readonly files: ReadonlyMap<string, RecordedFile>;

  private constructor(path: string, files: ReadonlyMap<string, RecordedFile>) {
    this.#path = path;
    this.files = files;
  }

  /** Empty where there is none, or none that can be read: files are then judged by their hashes alone. */
  static async read(path: string): Promise<FetchRecord> {
    const text = await readFile(path, 'utf8').catch(() => '');
    return new FetchRecord(path, new Map(Object.entries(parse(text))));
  }

  /** sha256 of the file as it was fetched, if that ETag stood for it. */
  known(path: string, etag: string | null): string | null {
    const file = this.files.get(path);
    return file && etag !== null && file.etag === etag ? file.sha256 : null;
  }

  async write(files: ReadonlyMap<string, RecordedFile>): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true });
    const temporary = `${this.#path}.new`;
    await writeFile(temporary, JSON.stringify({ files: Object.fromEntries(files) }));
    await rename(temporary, this.#path);
  }
}

function parse(text: string): Record<string, RecordedFile> {
  try {
    return Stored.parse(JSON.parse(text)).files;
  } catch {
    return {};
  }
}
