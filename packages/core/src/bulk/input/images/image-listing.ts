/** The paths of a folder or glob of images, in order, written to a file as they are found: a list of a million is never held. */
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readdir, rename, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { glob } from 'tinyglobby';
import { RemudaError } from '../../../errors.js';
import { writeFault } from '../../output/disk-faults.js';
import { isGlob, isImageEnding } from '../detect.js';

const WRITE_LETTERS = 1 << 16;

export class ImageListing {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Of a listing that was written before; null: there is none. */
  async rows(): Promise<number | null> {
    if ((await stat(this.path).catch(() => null)) === null) return null;
    let rows = 0;
    for await (const bytes of createReadStream(this.path) as AsyncIterable<Buffer>)
      for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) rows += 1;
    return rows;
  }

  /** There is none before all of it is. @throws RemudaError disk_full */
  async write(paths: AsyncIterable<string>): Promise<number> {
    const partial = `${this.path}.partial`;
    try {
      const handle = await open(partial, 'w');
      const rows = await writeLines(handle, paths).finally(() => handle.close());
      await rename(partial, this.path);
      return rows;
    } catch (error) {
      throw await writeFault(partial, error);
    }
  }
}

async function writeLines(handle: FileHandle, paths: AsyncIterable<string>): Promise<number> {
  let rows = 0;
  let text = '';
  for await (const path of paths) {
    // As JSON: a name may hold a newline.
    text += `${JSON.stringify({ path })}\n`;
    rows += 1;
    if (text.length < WRITE_LETTERS) continue;
    await handle.writeFile(text);
    text = '';
  }
  await handle.writeFile(text);
  await handle.sync();
  return rows;
}

/** Of a folder and the folders in it, but those that begin with a dot or are links; by the order of their whole paths. */
export async function* imagesUnder(folder: string, below = ''): AsyncGenerator<string> {
  const entries = await readdir(join(folder, below), { withFileTypes: true });
  const named = entries
    .filter(({ name }) => !name.startsWith('.'))
    .map((entry) => ({ entry, key: entry.isDirectory() ? `${entry.name}/` : entry.name }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const { entry } of named) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) yield* imagesUnder(folder, path);
    else if (isImageEnding(entry.name.split('.').at(-1) ?? '')) yield path;
  }
}

/** @param pattern absolute */
export function globbedImages(pattern: string): { base: string; paths: AsyncIterable<string> } {
  const parts = pattern.split('/');
  const first = parts.findIndex((part) => isGlob(part));
  const base = parts.slice(0, first).join('/') || '/';
  return { base, paths: globbed(base, parts.slice(first).join('/')) };
}

async function* globbed(base: string, pattern: string): AsyncGenerator<string> {
  const exists = await stat(base).catch(() => null);
  if (!exists)
    throw new RemudaError(
      'file_not_found',
      `${base}: there is no such folder, where "${pattern}" was looked for; check the path`,
    );
  const found = await glob(pattern, {
    cwd: base,
    absolute: false,
    onlyFiles: true,
    followSymbolicLinks: false,
  });
  const paths = found.map((path) => relative(base, join(base, path))).sort((a, b) => (a < b ? -1 : 1));
  for (const path of paths) if (isImageEnding(path.split('.').at(-1) ?? '')) yield path;
}
