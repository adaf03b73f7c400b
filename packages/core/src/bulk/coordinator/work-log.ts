/**
 * What one life of a coordinator writes: answers first, then the line that says where they are. A part counts once both
 * are on the disk (fdatasync); parts that come together are confirmed together. The ledger is told when a line is
 * written, never before. After a write that failed nothing more is taken: what this life knows of its files is over.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { diskFault, onDisk } from '../output/disk-faults.js';
import { syncPath, writeWhole } from '../output/file-sink.js';
import type { Extent, JournalEntry, PartEntry } from './journal-entries.js';
import { JOURNAL_FORM, journalLine } from './journal-entries.js';
import type { Ledger } from './ledger.js';
import type { FoundWork, WorkFile, WorkFolder } from './work-folder.js';

export interface NewPart extends Omit<PartEntry, 'k' | 'data' | 'errors'> {
  data: Uint8Array;
  errors: Uint8Array | null;
}

interface Order {
  entry: JournalEntry | NewPart;
  /** Waits until it is on the disk. */
  durable: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

export interface WorkLogOptions {
  folder: WorkFolder;
  found: FoundWork;
  job: string;
  epoch: number;
  /** Unix milliseconds. */
  now: number;
}

type Files = Record<WorkFile, FileHandle>;

export class WorkLog {
  readonly epoch: number;
  readonly ledger: Ledger;
  readonly #path: string;
  readonly #files: Files;
  readonly #ends = { journal: 0, data: 0, errors: 0 };
  #orders: Order[] = [];
  #underWay: Promise<void> | undefined;
  #broken: unknown;

  private constructor(path: string, epoch: number, ledger: Ledger, files: Files) {
    this.#path = path;
    this.epoch = epoch;
    this.ledger = ledger;
    this.#files = files;
  }

  /** Begins a life: from its first line on, what lives before it still write does not count. */
  static async begin({ folder, found, job, epoch, now }: WorkLogOptions): Promise<WorkLog> {
    await onDisk(folder.path, () => folder.make());
    // Nobody else has this epoch.
    const opened = (kind: WorkFile): Promise<FileHandle> =>
      onDisk(folder.path, () => open(folder.file(kind, epoch), 'wx+'));
    const data = await opened('data');
    const errors = await opened('errors');
    const log = new WorkLog(folder.path, epoch, found.ledger, {
      journal: await opened('journal'),
      data,
      errors,
    });
    await log.commit({ k: 'life', form: JOURNAL_FORM, job, epoch, at: now, seen: found.lives });
    await syncPath(folder.path);
    return log;
  }

  /**
   * What stands before the first part of an output: put there first, so that parts which come in order are the output
   * as they lie. Before any part.
   */
  async writeHead(head: Uint8Array | null): Promise<void> {
    if (head && this.#ends.data === 0)
      await onDisk(this.#path, () => this.#append('data', head).then(() => undefined));
  }

  /** Resolves when it is written; a crash of the machine may lose it, one of this process does not. */
  write(entry: JournalEntry): Promise<void> {
    return this.#order(entry, false);
  }

  /** Resolves when it is on the disk. @throws RemudaError disk_full */
  commit(entry: JournalEntry | NewPart): Promise<void> {
    return this.#order(entry, true);
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    await this.#underWay;
    this.#broken ??= new Error('the journal is closed');
    for (const file of Object.values(this.#files)) await file.close();
  }

  #order(entry: Order['entry'], durable: boolean): Promise<void> {
    if (this.#broken !== undefined) return Promise.reject(this.#broken);
    return new Promise((resolve, reject) => {
      this.#orders.push({ entry, durable, resolve, reject });
      this.#underWay ??= this.#work();
    });
  }

  async #work(): Promise<void> {
    // A turn later, so that what comes together goes together.
    await Promise.resolve();
    while (this.#orders.length > 0) {
      const orders = this.#orders.splice(0);
      try {
        if (this.#broken !== undefined) throw this.#broken;
        await this.#writeAll(orders);
        for (const { resolve } of orders) resolve();
      } catch (error) {
        this.#broken ??= await diskFault(this.#path, error);
        for (const { reject } of orders) reject(this.#broken);
      }
    }
    this.#underWay = undefined;
  }

  async #writeAll(orders: readonly Order[]): Promise<void> {
    const entries: JournalEntry[] = [];
    let touched = { data: false, errors: false };
    for (const { entry } of orders) {
      if ('k' in entry) entries.push(entry);
      else {
        const { data, errors, ...facts } = entry;
        const at = { data: await this.#append('data', data), errors: null as Extent | null };
        if (errors && errors.length > 0) at.errors = await this.#append('errors', errors);
        touched = { data: true, errors: touched.errors || at.errors !== null };
        entries.push({ k: 'part', ...facts, ...at });
      }
    }
    if (touched.data) await this.#files.data.datasync();
    if (touched.errors) await this.#files.errors.datasync();
    const lines = entries.map(journalLine);
    const { offset } = await this.#append('journal', Buffer.concat(lines));
    if (orders.some(({ durable }) => durable)) await this.#files.journal.datasync();
    let at = offset;
    for (const [i, entry] of entries.entries()) {
      const { length } = lines[i] as Buffer;
      this.ledger.apply(entry, this.epoch, { offset: at, length });
      at += length;
    }
  }

  async #append(kind: WorkFile, bytes: Uint8Array): Promise<Extent> {
    const offset = this.#ends[kind];
    await writeWhole(this.#files[kind], bytes, offset);
    this.#ends[kind] = offset + bytes.length;
    return { offset, length: bytes.length };
  }
}
