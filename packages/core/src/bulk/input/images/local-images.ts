/** Image files of this machine, within the folders that references may lead to: not out of them by ".." or a link. */
import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import { IMAGE_LIMIT_BYTES, ImageFault } from './image-fault.js';

export class LocalImages {
  readonly #base: string;
  /** As they were given, and where they really are; null: anywhere. */
  readonly #roots: Promise<string[]> | null;
  readonly #lexical: string[];
  readonly #closed: Promise<string> | null;

  /** @param closed a folder in them that is none of theirs */
  constructor(base: string, roots: readonly string[] | null, closed?: string) {
    this.#base = base;
    this.#closed = closed === undefined ? null : realpath(closed).catch(() => resolve(closed));
    this.#lexical = roots?.map((root) => resolve(root)) ?? [];
    this.#roots = roots && Promise.all(this.#lexical.map((root) => realpath(root).catch(() => root)));
  }

  /** @throws ImageFault */
  async read(reference: string): Promise<Uint8Array> {
    try {
      return await readImage(await this.#place(reference));
    } catch (error) {
      throw faultOf(error);
    }
  }

  async #place(reference: string): Promise<string> {
    const path = resolve(this.#base, reference);
    if (this.#roots === null) return path;
    const roots = await this.#roots;
    // Nothing is asked of the disk about what lies outside.
    if (![...this.#lexical, ...roots].some((root) => isWithin(path, root))) throw outside();
    const real = await realpath(path);
    if (!roots.some((root) => isWithin(real, root))) throw outside();
    const closed = await this.#closed;
    if (closed !== null && isWithin(real, closed)) throw outside();
    return real;
  }
}

function isWithin(path: string, root: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
}

function outside(): ImageFault {
  return new ImageFault(
    'lies outside of the folders that may be read; move it there, or give a path in them',
  );
}

async function readImage(path: string): Promise<Uint8Array> {
  // A pipe would be waited for.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const facts = await handle.stat();
    if (!facts.isFile()) throw new ImageFault('is no file');
    if (facts.size > IMAGE_LIMIT_BYTES)
      throw new ImageFault(`is ${facts.size} bytes, and at most ${IMAGE_LIMIT_BYTES} are read`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

function faultOf(error: unknown): ImageFault {
  if (error instanceof ImageFault) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return new ImageFault('is not there; check the path');
  if (code === 'EACCES') return new ImageFault('may not be read by this worker; check its permissions');
  return new ImageFault(`cannot be read: ${message}`);
}
