/**
 * The file store (BulkFiles): contents on the disk (file-folder.ts), facts in Redis (file-facts.ts). The disk is the
 * truth: what Redis has lost is found there again, and what has no content is no file. A tenant sees its own files only.
 */
import { relative } from 'node:path';
import type { Readable } from 'node:stream';
import type { BulkFile } from '@remuda/schemas';
import type { Sight } from '../../access/caller.js';
import { RemudaError } from '../../errors.js';
import { type Clock, systemClock } from '../../lifecycle/clock.js';
import type { Keys } from '../../store/keys.js';
import type { Place } from '../../store/newest-first.js';
import type { Redis } from '../../store/redis.js';
import type { BulkFileQuery, BulkFiles, BulkPage, NewFile, StagedFile } from '../bulk-use-cases.js';
import { FileFacts } from './file-facts.js';
import { FileFolder, type FileFolderOptions, noSuchFile } from './file-folder.js';
import { sameFolder } from './folder-identity.js';
import { isExpired, type StoredFile, shownFile, storedFile } from './stored-file.js';

export interface BulkFilesOptions {
  /** REMUDA_FILES. */
  folder: string;
  redis: Redis;
  keys: Keys;
  clock?: Clock;
  /** Around what is asked of Redis. Default: nothing. */
  guard?: { run<T>(work: () => Promise<T>): Promise<T> };
  /** Files that jobs which have not ended read: the job by the id of the file. Default: none. */
  readers?: FileReaders;
  openNew?: FileFolderOptions['openNew'];
}

export type FileReaders = () => Promise<ReadonlyMap<string, string>>;

const UNGUARDED = { run: <T>(work: () => Promise<T>): Promise<T> => work() };
const NO_LIMIT = Number.MAX_SAFE_INTEGER;
/** Ids that are looked at in one question to Redis, where a filter lets few of them through. */
const FEWEST_OF_A_PAGE = 50;

export function createBulkFiles(options: BulkFilesOptions): FileStore {
  return new FileStore(options);
}

export class FileStore implements BulkFiles {
  readonly #options: BulkFilesOptions;
  readonly #clock: Clock;
  readonly #guard: NonNullable<BulkFilesOptions['guard']>;
  readonly folder: FileFolder;
  readonly facts: FileFacts;

  constructor(options: BulkFilesOptions) {
    const { folder, redis, keys, clock = systemClock, guard = UNGUARDED, openNew } = options;
    this.#options = options;
    this.#clock = clock;
    this.#guard = guard;
    this.folder = new FileFolder({ root: folder, ...(openNew ? { openNew } : {}) });
    this.facts = new FileFacts(redis, keys);
  }

  async create(content: Readable, facts: NewFile): Promise<BulkFile> {
    const staged = await this.stage(content, facts.mostBytes);
    return staged.keep(facts);
  }

  async stage(content: Readable, mostBytes = NO_LIMIT): Promise<StagedFile> {
    // Before the first byte: a Redis that is away, or a folder that is not ours, is no news for after ten gigabytes.
    try {
      await this.checkFolder();
    } catch (error) {
      content.destroy();
      throw error;
    }
    const { path, bytes } = await this.folder.take(content, mostBytes);
    const drop = (): Promise<void> => this.folder.drop(path);
    return {
      bytes,
      drop,
      keep: async (facts) => {
        try {
          return await this.#keep(path, bytes, facts);
        } catch (error) {
          await drop();
          throw error;
        }
      },
    };
  }

  async adopt(path: string, facts: NewFile): Promise<BulkFile> {
    if (relative(this.folder.root, path).startsWith('..'))
      throw new Error(
        `${path} is not within REMUDA_FILES (${this.folder.root}), so it cannot be renamed into it`,
      );
    const there = facts.id === undefined ? undefined : await this.folder.factsOf(facts.id);
    if (there === undefined) return this.#keep(path, await this.folder.sizeAt(path), facts);
    await this.#guard.run(() => this.facts.put(there));
    return shownFile(there);
  }

  async #keep(path: string, bytes: number, facts: NewFile): Promise<BulkFile> {
    const file = storedFile(facts, bytes, this.#clock.now());
    await this.folder.keep(path, file);
    try {
      await this.#guard.run(() => this.facts.put(file));
    } catch (error) {
      // It was not accepted, so it must not be found again on the disk. An adopted one is: its maker comes back.
      if (facts.id === undefined) await this.folder.remove(file.id);
      throw error;
    }
    return shownFile(file);
  }

  async get(id: string, sight: Sight = null): Promise<BulkFile> {
    return shownFile(await this.#find(id, sight));
  }

  async list(
    { limit, after, purpose, order = 'desc' }: BulkFileQuery,
    sight: Sight = null,
  ): Promise<BulkPage<BulkFile>> {
    let place = after === undefined ? undefined : await this.#placeOf(after);
    const entries: BulkFile[] = [];
    const count = Math.max(limit + 1, FEWEST_OF_A_PAGE);
    for (;;) {
      const from = place;
      const page = await this.#guard.run(() => this.facts.page(sight, { after: from, count, order }));
      const files = await this.#guard.run(() => this.facts.getAll(page.map(({ id }) => id)));
      const now = this.#clock.now();
      for (const file of files) {
        if (!file || isExpired(file, now) || (purpose !== undefined && file.purpose !== purpose)) continue;
        if (entries.length === limit) return { entries, hasMore: true };
        entries.push(shownFile(file));
      }
      place = page.at(-1);
      if (page.length < count) return { entries, hasMore: false };
    }
  }

  async #placeOf(id: string): Promise<Place> {
    const place = await this.#guard.run(() => this.facts.placeOf(id));
    if (!place) throw noSuchFile(id);
    return place;
  }

  async delete(id: string, sight: Sight = null): Promise<void> {
    const { tenant } = await this.#find(id, sight);
    const reader = (await this.readers()).get(id);
    if (reader !== undefined) {
      throw new RemudaError(
        'batch_state',
        `${id} is read by ${reader}: wait for its end, or cancel it, and delete the file then`,
      );
    }
    await this.drop(id, tenant);
  }

  /** Files that must stay: the job that reads each, by its id. */
  readers(): Promise<ReadonlyMap<string, string>> {
    return this.#guard.run(async () => (await this.#options.readers?.()) ?? new Map());
  }

  /** Deletes it whoever reads it. The content goes first: facts that are left behind lead nowhere. */
  async drop(id: string, tenant: string | undefined): Promise<void> {
    await this.folder.remove(id);
    await this.#guard.run(() => this.facts.forget(id, tenant));
  }

  async read(
    id: string,
    range?: { from: number; to: number },
    sight: Sight = null,
  ): Promise<{ file: BulkFile; content: Readable }> {
    const file = await this.#find(id, sight);
    return { file: shownFile(file), content: await this.folder.open(id, range) };
  }

  pathOf(id: string): string {
    return this.folder.pathOf(id);
  }

  /** Whether this process sees the folder of the fleet. @throws RemudaError unsupported_feature, store_unavailable */
  checkFolder(): Promise<string> {
    const { redis, keys } = this.#options;
    return this.#guard.run(() => sameFolder({ folder: this.folder.root, redis, keys }));
  }

  /** What Redis says, else the disk. @throws RemudaError file_not_found, also for a file of somebody else */
  async #find(id: string, sight: Sight): Promise<StoredFile> {
    this.folder.pathOf(id);
    const known = await this.#guard.run(() => this.facts.get(id));
    const file = known ?? (await this.recover(id));
    if (!file || (sight !== null && file.tenant !== sight) || isExpired(file, this.#clock.now()))
      throw noSuchFile(id);
    if (known && (await this.folder.sizeOf(id)) === undefined) throw noSuchFile(id);
    return file;
  }

  /** Puts into Redis what the disk knows of a file; undefined: it has none of that id. */
  async recover(id: string): Promise<StoredFile | undefined> {
    const file = await this.folder.factsOf(id);
    if (file) await this.#guard.run(() => this.facts.put(file));
    return file;
  }
}
