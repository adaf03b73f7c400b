/**
 * sha256 of files and of folders of files. A file is read again only when its path, size or times have changed, so
 * that a repository of gigabytes can be looked through every few seconds.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

const HIDDEN = /(?:^|[\\/])\./;

interface Known {
  stamp: string;
  hash: string;
}

export class FileHashes {
  readonly #known = new Map<string, Known>();

  /** sha256 of one file, in hex. */
  async ofFile(path: string): Promise<string> {
    const { size, mtimeMs, ctimeMs } = await stat(path);
    // The change time too: a copy that keeps the modification time may keep the size as well.
    const stamp = `${size} ${mtimeMs} ${ctimeMs}`;
    const known = this.#known.get(path);
    if (known?.stamp === stamp) return known.hash;
    const hash = await readHash(path);
    this.#known.set(path, { stamp, hash });
    return hash;
  }

  /**
   * Name and sha256 of each file in a folder and below it, in the order of the names; hidden ones are left out.
   * @param counts which names to look at, with "/"; default all
   */
  async ofFolder(
    folder: string,
    counts: (name: string) => boolean = () => true,
  ): Promise<Array<readonly [name: string, hash: string]>> {
    const names = (await readdir(folder, { recursive: true }))
      .filter((name) => !HIDDEN.test(name) && counts(name.replaceAll('\\', '/')))
      .sort();
    const found = await Promise.all(names.map((name) => this.#ofEntry(folder, name)));
    return found.filter((entry) => entry !== undefined);
  }

  async #ofEntry(folder: string, name: string): Promise<readonly [string, string] | undefined> {
    const path = join(folder, name);
    try {
      if (!(await stat(path)).isFile()) return undefined;
      return [name.replaceAll('\\', '/'), await this.ofFile(path)];
    } catch (error) {
      // Someone's temporary file, renamed or removed since the folder was listed.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }
}

async function readHash(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}
