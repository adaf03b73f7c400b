/**
 * Downloads of one model, hidden until they are published. Nothing of what is served changes while files are staged;
 * publish() then moves whole folders and files into place by renames, model.yaml before the versions that need it.
 */
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CONFIG_FILE } from '../manifests.js';
import { type Downloaded, download, hashOf } from './download.js';
import { FetchRecord } from './fetch-record.js';
import type { Patience } from './patience.js';
import type { SourceFile } from './source-files.js';

export interface SyncProgress {
  model: string;
  /** Relative to the model folder. */
  file: string;
  /** Of this file, so far. */
  bytes: number;
  /** null: the source did not say. */
  total: number | null;
}

export interface StagedFilesOptions {
  /** Hidden folder of the model in the cache. */
  workFolder: string;
  patience: Patience;
  /** Files at once. */
  concurrency: number;
  onProgress(file: string, bytes: number, total: number | null): void;
}

export class StagedFiles {
  readonly #options: StagedFilesOptions;
  readonly #staged: string;
  readonly #partial: string;
  /** What was found of the files that have come, so that another process need not fetch them again. */
  readonly #found = new Map<string, Downloaded>();

  constructor(options: StagedFilesOptions) {
    this.#options = options;
    this.#staged = join(options.workFolder, 'staged');
    this.#partial = join(options.workFolder, 'partial');
  }

  /** Where a staged file is. */
  pathOf(path: string): string {
    return join(this.#staged, path);
  }

  /** Brings the files here, checked; the first failure ends the other transfers. */
  async stage(files: readonly SourceFile[], signal: AbortSignal): Promise<void> {
    const failure = new AbortController();
    const both = AbortSignal.any([signal, failure.signal]);
    const waiting = [...files];
    const takeTurns = async (): Promise<void> => {
      for (let file = waiting.shift(); file; file = waiting.shift()) await this.#stageOne(file, both);
    };
    const turns = Array.from({ length: this.#options.concurrency }, () =>
      takeTurns().catch((error: unknown) => {
        failure.abort(error);
        throw error;
      }),
    );
    await Promise.allSettled(turns);
    signal.throwIfAborted();
    failure.signal.throwIfAborted();
  }

  /** @throws when the file was not staged */
  found(path: string): Downloaded {
    const found = this.#found.get(path);
    if (!found) throw new Error(`${path} was not staged`);
    return found;
  }

  /**
   * Moves what was staged to the model's folder.
   * @param files those that are moved one by one
   * @param versions those that are moved as whole folders
   */
  async publish(
    paths: readonly string[],
    { files, versions }: { files: readonly string[]; versions: readonly string[] },
    modelFolder: string,
  ): Promise<void> {
    await this.#keepOnly(paths);
    await syncFolders(this.#staged);
    if (!(await exists(modelFolder))) {
      await rename(this.#staged, modelFolder);
    } else {
      for (const path of inOrder(files)) await this.#publishFile(path, modelFolder);
      for (const version of versions) await this.#publishVersion(version, modelFolder);
      await syncFolder(modelFolder);
    }
    await syncFolder(dirname(modelFolder));
  }

  /** Removes what is no longer needed once all is published. */
  async clear(): Promise<void> {
    for (const name of ['staged', 'partial', 'damaged'])
      await rm(join(this.#options.workFolder, name), { recursive: true, force: true });
  }

  async #stageOne(file: SourceFile, signal: AbortSignal): Promise<void> {
    if (this.#found.has(file.path)) return;
    const id = createHash('sha256').update(file.path).digest('hex').slice(0, 32);
    const partial = join(this.#partial, `${id}.data`);
    const done = await FetchRecord.read(join(this.#partial, `${id}.done`));
    const before = await this.#stagedBefore(file, done);
    if (before) {
      this.#found.set(file.path, before);
      return;
    }
    const onBytes = (bytes: number, total: number | null): void =>
      this.#options.onProgress(file.path, bytes, total);
    const { patience } = this.#options;
    const target = { partial, state: join(this.#partial, `${id}.state`) };
    const found = await download(file, target, { patience, onBytes, signal });
    await done.write(new Map([[file.path, { sha256: found.sha256, etag: found.etag }]]));
    await mkdir(dirname(this.pathOf(file.path)), { recursive: true });
    await rename(partial, this.pathOf(file.path));
    this.#found.set(file.path, found);
  }

  /** The file, if an earlier sync has staged the same and its bytes are still what they were. */
  async #stagedBefore(
    { path, sha256, etag }: SourceFile,
    done: FetchRecord,
  ): Promise<Downloaded | undefined> {
    const expected = sha256 ?? done.known(path, etag);
    if (expected === null || !(await exists(this.pathOf(path)))) return undefined;
    const found = await hashOf(this.pathOf(path));
    return found.sha256 === expected ? { ...found, etag } : undefined;
  }

  /** What an earlier sync staged and this one does not publish stays out. */
  async #keepOnly(paths: readonly string[]): Promise<void> {
    const kept = new Set(paths);
    for (const entry of await readdir(this.#staged, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      const name = path.slice(this.#staged.length + 1).replaceAll('\\', '/');
      if (!entry.isDirectory() && !kept.has(name)) await rm(path);
    }
    await removeEmptyFolders(this.#staged);
  }

  async #publishFile(path: string, modelFolder: string): Promise<void> {
    await mkdir(dirname(join(modelFolder, path)), { recursive: true });
    await rename(this.pathOf(path), join(modelFolder, path));
  }

  async #publishVersion(version: string, modelFolder: string): Promise<void> {
    const target = join(modelFolder, version);
    // Only a version whose files were damaged is there already.
    const aside = join(this.#options.workFolder, 'damaged');
    await rm(aside, { recursive: true, force: true });
    if (await exists(target)) await rename(target, aside);
    await rename(join(this.#staged, version), target);
  }
}

/** What the configuration may name comes before it. */
function inOrder(shared: readonly string[]): string[] {
  return [...shared].sort((a, b) => Number(a === CONFIG_FILE) - Number(b === CONFIG_FILE));
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function removeEmptyFolders(folder: string): Promise<boolean> {
  let empty = true;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && (await removeEmptyFolders(path))) await rm(path, { recursive: true });
    else empty = false;
  }
  return empty;
}

/** So that after a power cut a name that is there has its files. */
async function syncFolders(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await syncFolders(join(folder, entry.name));
  await syncFolder(folder);
}

async function syncFolder(folder: string): Promise<void> {
  // Not every system opens folders.
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
