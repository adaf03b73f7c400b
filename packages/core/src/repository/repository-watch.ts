/**
 * A model repository that is looked at every few seconds: a look asks only for the times and sizes of what was there,
 * and reads again the models in which something has changed. 200 models cost a few hundred calls of stat.
 */
import { stat } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { RemudaError } from '../errors.js';
import { FileHashes } from './file-hashes.js';
import { type RepositoryModel, scanModelFolder, subfolders } from './manifests.js';

/** Stats under way at once: a slow network folder must not take every thread of the pool. */
const AT_ONCE = 32;

/** One model's folder, read again when something in it has changed. */
export class ModelWatch {
  readonly #folder: string;
  readonly #name: string;
  readonly #hashes: FileHashes;
  /** What stood where when it was read, by path. */
  #marks: ReadonlyMap<string, string> = new Map();
  #model: RepositoryModel | undefined;

  constructor(folder: string, name: string, hashes: FileHashes) {
    this.#folder = folder;
    this.#name = name;
    this.#hashes = hashes;
  }

  /** The same object as before where nothing has changed. Never rejects: faults are in its problems. */
  async look(): Promise<RepositoryModel> {
    if (this.#model && (await isUnchanged(this.#marks))) return this.#model;
    // Marks are taken first: what changes while it is read differs from them at the next look.
    this.#marks = await marksOf(this.#folder);
    this.#model = await scanModelFolder(this.#folder, this.#name, this.#hashes);
    return this.#model;
  }
}

export class RepositoryWatch {
  /** Absolute path. */
  readonly folder: string;
  readonly #hashes: FileHashes;
  #watches = new Map<string, ModelWatch>();
  #rootMark = '';
  #names: string[] = [];

  constructor(folder: string, hashes = new FileHashes()) {
    this.folder = resolve(folder);
    this.#hashes = hashes;
  }

  /**
   * The models as they are now, by name. A model that has not changed is the same object as at the last look.
   * @throws RemudaError model_load_failed when the folder itself cannot be read
   */
  async look(): Promise<ReadonlyMap<string, RepositoryModel>> {
    const models = new Map<string, RepositoryModel>();
    const watches = new Map<string, ModelWatch>();
    for (const name of await this.#modelNames()) {
      const watch = this.#watches.get(name) ?? new ModelWatch(join(this.folder, name), name, this.#hashes);
      watches.set(name, watch);
      models.set(name, await watch.look());
    }
    this.#watches = watches;
    return models;
  }

  async #modelNames(): Promise<string[]> {
    const mark = await markOf(this.folder);
    if (mark === 'none') {
      throw new RemudaError('model_load_failed', `the model repository ${this.folder} cannot be read`);
    }
    if (mark === this.#rootMark) return this.#names;
    this.#names = await subfolders(this.folder);
    this.#rootMark = mark;
    return this.#names;
  }
}

async function isUnchanged(marks: ReadonlyMap<string, string>): Promise<boolean> {
  const paths = [...marks.keys()];
  for (let from = 0; from < paths.length; from += AT_ONCE) {
    const some = paths.slice(from, from + AT_ONCE);
    const now = await Promise.all(some.map(markOf));
    if (some.some((path, i) => marks.get(path) !== now[i])) return false;
  }
  return true;
}

/** Of a model's folder and everything below it. A new file changes the times of its folder. */
async function marksOf(folder: string): Promise<Map<string, string>> {
  const below = await readdir(folder, { recursive: true }).catch(() => []);
  const marks = new Map<string, string>();
  for (const path of [folder, ...below.map((name) => join(folder, name))])
    marks.set(path, await markOf(path));
  return marks;
}

/** By callback: at hundreds of calls a look, the promises of node:fs cost half as much again. */
function markOf(path: string): Promise<string> {
  return new Promise((resolve) => {
    stat(path, (error, found) => {
      resolve(error ? 'none' : `${found.size} ${found.mtimeMs} ${found.ctimeMs} ${found.ino}`);
    });
  });
}
