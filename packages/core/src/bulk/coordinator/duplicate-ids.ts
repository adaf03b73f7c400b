/**
 * Finds ids that stand twice in an input of any size: hashes go to files by their first bits, and each file is looked
 * through alone, so that memory does not grow with the rows. The hash has 80 bits: two of a billion ids have the same
 * one by chance once in a million inputs.
 */
import { type FileHandle, mkdir, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hashId } from './id-hash.js';

const BUCKETS = 64;
const HASH_BYTES = 10;
const ROW_BYTES = 6;
const ENTRY_BYTES = HASH_BYTES + ROW_BYTES;
const BUFFER_BYTES = 4_096 * ENTRY_BYTES;
/** Pairs that are named. */
const MOST = 20;

export interface DuplicateId {
  row: number;
  first: number;
}

export class DuplicateIds {
  readonly #folder: string;
  readonly #buckets: (Bucket | undefined)[] = [];
  readonly #hash = Buffer.alloc(16);

  /** @param folder it makes for itself, and takes away */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** @returns something to wait for, now and then: for each of millions of ids that would cost more than the rest */
  add(id: string, row: number): Promise<void> | undefined {
    hashId(id, this.#hash, 0);
    const index = (this.#hash[HASH_BYTES] as number) % BUCKETS;
    const bucket = this.#buckets[index] ?? new Bucket(this.#folder, join(this.#folder, String(index)));
    this.#buckets[index] = bucket;
    return bucket.add(this.#hash, row);
  }

  /** The first of them in order of rows. */
  async find(): Promise<DuplicateId[]> {
    const found: DuplicateId[] = [];
    for (const bucket of this.#buckets) {
      if (!bucket) continue;
      found.push(...duplicatesOf(await bucket.all()));
      found.sort((a, b) => a.row - b.row).splice(MOST);
    }
    return found;
  }

  async close(): Promise<void> {
    await Promise.all(this.#buckets.map((bucket) => bucket?.close()));
    await rm(this.#folder, { recursive: true, force: true });
  }
}

class Bucket {
  readonly #folder: string;
  readonly #path: string;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #used = 0;
  #file: FileHandle | undefined;

  constructor(folder: string, path: string) {
    this.#folder = folder;
    this.#path = path;
  }

  add(hash: Buffer, row: number): Promise<void> | undefined {
    hash.copy(this.#buffer, this.#used, 0, HASH_BYTES);
    this.#buffer.writeUIntBE(row, this.#used + HASH_BYTES, ROW_BYTES);
    this.#used += ENTRY_BYTES;
    return this.#used === BUFFER_BYTES ? this.#flush() : undefined;
  }

  async all(): Promise<Buffer> {
    if (!this.#file) return this.#buffer.subarray(0, this.#used);
    await this.#flush();
    return readFile(this.#path);
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  async #flush(): Promise<void> {
    if (!this.#file) await mkdir(this.#folder, { recursive: true });
    this.#file ??= await open(this.#path, 'w');
    await this.#file.appendFile(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }
}

function duplicatesOf(entries: Buffer): DuplicateId[] {
  const seen = new Map<string, number>();
  const found: DuplicateId[] = [];
  for (let at = 0; at < entries.length; at += ENTRY_BYTES) {
    const hash = entries.toString('latin1', at, at + HASH_BYTES);
    const row = entries.readUIntBE(at + HASH_BYTES, ROW_BYTES);
    const first = seen.get(hash);
    if (first === undefined) seen.set(hash, row);
    else found.push({ row, first });
  }
  return found;
}
