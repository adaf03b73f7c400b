/**
 * Finds ids that two rows share, before a job starts. Ids are seen once, as 64-bit hashes with their rows: a few
 * megabytes of them in memory, more in bucket files that are looked at one after another, so that memory does not grow
 * with the file. Hashes that agree are only suspects: the ids themselves are read again and compared.
 */
import { type FileHandle, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { itemError, RemudaError } from '../../errors.js';
import type { Column } from '../columns.js';
import { textAt } from '../row-values.js';

export interface DuplicateId {
  id: string;
  /** Numbers of two rows that have it, from 0. */
  rows: [number, number];
}

export interface DuplicateSearch {
  /** The ids of all rows, block by block. null: the row has none, which is no duplicate. */
  ids: AsyncIterable<readonly (string | null)[]> | Iterable<readonly (string | null)[]>;
  /** The id of a row once more; where it is not given, equal hashes count as equal ids. */
  idOf?(row: number): Promise<string | null>;
  /** Duplicates to find; default 1. */
  most?: number;
  /** Where bucket files may lie; default the folder of temporary files of the system. */
  folder?: string;
  /** Ids that are kept in memory; default 500,000, which are 8 MB. */
  inMemory?: number;
}

const BUCKETS = 64;
/** Of an id in a bucket: its hash, and its row as a double. */
const RECORD_BYTES = 16;
const WRITE_BYTES = 64 * 1024;

/** In the order of their second rows within a bucket; [] where every id is that of one row. */
export async function findDuplicateIds(search: DuplicateSearch): Promise<DuplicateId[]> {
  const { ids, most = 1, inMemory = 500_000 } = search;
  const memory = new Records(inMemory);
  const spill = new Spill(search.folder ?? tmpdir());
  try {
    let row = 0;
    for await (const block of ids) {
      for (const id of block) {
        if (id !== null) {
          if (memory.full) await spill.take(memory);
          memory.add(id, row);
        }
        row++;
      }
    }
    if (!spill.used) return await duplicatesIn(memory.all(), search, most);
    await spill.take(memory);
    const found: DuplicateId[] = [];
    for await (const bucket of spill.buckets()) {
      found.push(...(await duplicatesIn(bucket, search, most - found.length)));
      if (found.length >= most) break;
    }
    return found;
  } finally {
    await spill.remove();
  }
}

/** What a job ends with that has such rows. */
export function duplicateIdError({ id, rows: [first, second] }: DuplicateId): RemudaError {
  const { message, details } = itemError(
    'duplicate_custom_id',
    `rows ${first} and ${second} (from 0) have the same custom_id ${JSON.stringify(id)}; give each row an id of its own, or name another column`,
    { custom_id: id, rows: [first, second] },
  );
  return new RemudaError('duplicate_custom_id', message, details);
}

/** The ids of a block as texts; null where the row has none. */
export function idsOfColumn(column: Column): (string | null)[] {
  const rows = column.type === 'list' ? column.offsets.length - 1 : column.values.length;
  return Array.from({ length: rows }, (_, row) => textAt(column, row));
}

/** Ids as hash and row, in flat memory. */
class Records {
  /** Two for each hash. */
  readonly #words: Uint32Array;
  readonly #rows: Float64Array;
  #count = 0;

  constructor(capacity: number) {
    this.#words = new Uint32Array(capacity * 2);
    this.#rows = new Float64Array(capacity);
  }

  get full(): boolean {
    return this.#count === this.#rows.length;
  }

  add(id: string, row: number): void {
    hashInto(this.#words, this.#count * 2, id);
    this.#rows[this.#count++] = row;
  }

  all(): Bucket {
    const hashes = new BigUint64Array(this.#words.buffer, 0, this.#count);
    return { hashes, rows: this.#rows.subarray(0, this.#count) };
  }

  clear(): void {
    this.#count = 0;
  }
}

interface Bucket {
  hashes: BigUint64Array;
  rows: Float64Array;
}

/** Two 32-bit hashes of different seeds, mixed into each other at the end: twenty times as fast as a cryptographic one. */
function hashInto(words: Uint32Array, at: number, id: string): void {
  let low = 0x9e3779b9 ^ id.length;
  let high = 0x85ebca6b ^ id.length;
  for (let i = 0; i < id.length; i++) {
    const unit = id.charCodeAt(i);
    low = Math.imul(low ^ unit, 0x9e3779b1);
    low ^= low >>> 15;
    high = Math.imul(high ^ unit, 0xc2b2ae35);
    high ^= high >>> 13;
  }
  words[at] = mixed(low ^ Math.imul(high, 0x27d4eb2f));
  words[at + 1] = mixed(high ^ Math.imul(low, 0x165667b1));
}

function mixed(word: number): number {
  const once = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return (twice ^ (twice >>> 16)) >>> 0;
}

/** Bucket files by the first bits of the hash: equal ids are in one. */
class Spill {
  readonly #parent: string;
  #folder: string | undefined;
  readonly #files: FileHandle[] = [];

  constructor(parent: string) {
    this.#parent = parent;
  }

  get used(): boolean {
    return this.#folder !== undefined;
  }

  async take(records: Records): Promise<void> {
    await this.#open();
    const { hashes, rows } = records.all();
    const buffers = this.#files.map(() => new RecordBuffer());
    for (let i = 0; i < rows.length; i++) {
      const bucket = Number((hashes[i] as bigint) >> 58n);
      const buffer = buffers[bucket] as RecordBuffer;
      if (buffer.full) await this.#files[bucket]?.appendFile(buffer.drain());
      buffer.add(hashes[i] as bigint, rows[i] as number);
    }
    for (const [bucket, buffer] of buffers.entries()) await this.#files[bucket]?.appendFile(buffer.drain());
    records.clear();
  }

  async *buckets(): AsyncGenerator<Bucket> {
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const bytes = await readFile(this.#path(bucket));
      const count = bytes.byteLength / RECORD_BYTES;
      const hashes = new BigUint64Array(count);
      const rows = new Float64Array(count);
      for (let i = 0; i < count; i++) {
        hashes[i] = bytes.readBigUInt64LE(i * RECORD_BYTES);
        rows[i] = bytes.readDoubleLE(i * RECORD_BYTES + 8);
      }
      yield { hashes, rows };
    }
  }

  async remove(): Promise<void> {
    for (const file of this.#files.splice(0)) await file.close();
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }

  async #open(): Promise<void> {
    if (this.#folder) return;
    this.#folder = await mkdtemp(join(this.#parent, 'remuda-ids-'));
    for (let bucket = 0; bucket < BUCKETS; bucket++) this.#files.push(await open(this.#path(bucket), 'a'));
  }

  #path(bucket: number): string {
    return join(this.#folder as string, String(bucket));
  }
}

class RecordBuffer {
  #bytes = Buffer.allocUnsafe(WRITE_BYTES);
  #length = 0;

  get full(): boolean {
    return this.#length + RECORD_BYTES > WRITE_BYTES;
  }

  add(hash: bigint, row: number): void {
    this.#bytes.writeBigUInt64LE(hash, this.#length);
    this.#bytes.writeDoubleLE(row, this.#length + 8);
    this.#length += RECORD_BYTES;
  }

  drain(): Buffer {
    const drained = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    return drained;
  }
}

/** Sorted by hash, duplicates are neighbours. */
async function duplicatesIn(
  { hashes, rows }: Bucket,
  { idOf }: DuplicateSearch,
  most: number,
): Promise<DuplicateId[]> {
  const twice = sharedHashes(hashes);
  if (twice.size === 0) return [];
  const found: DuplicateId[] = [];
  const seen = new Map<string, number>();
  for (let i = 0; i < rows.length && found.length < most; i++) {
    const hash = hashes[i] as bigint;
    if (!twice.has(hash)) continue;
    const row = rows[i] as number;
    const id = idOf ? await idOf(row) : `hash ${hash.toString(16)}`;
    if (id === null) continue;
    const first = seen.get(id);
    if (first === undefined) seen.set(id, row);
    else found.push({ id, rows: [first, row] });
  }
  return found;
}

/** At most a few thousand: a file of nothing but duplicates is told by the first. */
const MOST_SHARED = 10_000;

function sharedHashes(hashes: BigUint64Array): Set<bigint> {
  const sorted = hashes.slice().sort();
  const shared = new Set<bigint>();
  for (let i = 1; i < sorted.length && shared.size < MOST_SHARED; i++) {
    if (sorted[i] === sorted[i - 1]) shared.add(sorted[i] as bigint);
  }
  return shared;
}
