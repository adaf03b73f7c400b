/**
 * The work folder of a job on the disk: the journal, and the answers that it speaks of. Each life of a coordinator writes
 * files of its own, and its first line says up to where the files of the lives before it count. So nothing is ever cut
 * off or overwritten, and a life that was thought dead and wakes up writes where nobody looks.
 *
 *   journal.<epoch>   what is done, line by line (journal-entries.ts)
 *   data.<epoch>      parts of the output
 *   errors.<epoch>    lines of the file of errors
 */
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { RemudaError } from '../../errors.js';
import { JOURNAL_FORM, type JournalEntry, readJournal } from './journal-entries.js';
import { Ledger } from './ledger.js';

export type WorkFile = 'journal' | 'data' | 'errors';

/** Lives that count, oldest first, and how many bytes of the journal of each do. */
export type Lives = [epoch: number, bytes: number][];

export interface FoundWork {
  ledger: Ledger;
  lives: Lives;
  /** The newest there is, whether it counts or not. */
  epoch: number;
  /** Of the job that began it; null: nothing is there. */
  job: string | null;
}

export class WorkFolder {
  constructor(readonly path: string) {}

  file(kind: WorkFile, epoch: number): string {
    return join(this.path, `${kind}.${epoch}`);
  }

  /** What the lives before have done. */
  async read(): Promise<FoundWork> {
    const epochs = await this.#epochs();
    const newest = epochs.at(-1) ?? 0;
    for (const epoch of [...epochs].reverse()) {
      const head = await this.#headOf(epoch);
      if (!head) continue;
      const ledger = new Ledger();
      for (const [before, bytes] of head.entry.seen) await this.#replay(ledger, before, bytes);
      const bytes = await this.#replay(ledger, epoch, Number.POSITIVE_INFINITY);
      return { ledger, lives: [...head.entry.seen, [epoch, bytes]], epoch: newest, job: head.entry.job };
    }
    return { ledger: new Ledger(), lives: [], epoch: newest, job: null };
  }

  async make(): Promise<void> {
    await mkdir(this.path, { recursive: true });
  }

  /** Joined files that lives before have not given to anybody. */
  async removeJoined(before: number): Promise<void> {
    for (const name of await readdir(this.path)) {
      const epoch = Number(/^(?:output|failed)\.(\d+)$/.exec(name)?.[1] ?? before);
      if (epoch < before) await rm(join(this.path, name), { force: true });
    }
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  async #epochs(): Promise<number[]> {
    const names = await readdir(this.path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return names
      .flatMap((name) => /^journal\.(\d+)$/.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => a - b);
  }

  async #headOf(epoch: number) {
    const [first] = readJournal(await readFile(this.file('journal', epoch)));
    if (first?.entry.k !== 'life') return null;
    if (first.entry.form !== JOURNAL_FORM)
      throw new RemudaError(
        'internal',
        `${this.file('journal', epoch)} is of form ${first.entry.form}, and this release knows ${JOURNAL_FORM}`,
      );
    return { entry: first.entry };
  }

  /** @returns bytes that count */
  async #replay(ledger: Ledger, epoch: number, most: number): Promise<number> {
    const bytes = await readFile(this.file('journal', epoch));
    const written = await this.#written(epoch);
    let counted = 0;
    for (const { entry, at } of readJournal(bytes.subarray(0, Math.min(most, bytes.length)))) {
      // A disk that lost what it had confirmed: these rows run again.
      if (entry.k === 'part' && !holds(entry, written)) break;
      ledger.apply(entry, epoch, at);
      counted = at.offset + at.length;
    }
    return counted;
  }

  async #written(epoch: number): Promise<{ data: number; errors: number }> {
    const size = async (kind: WorkFile): Promise<number> =>
      (await stat(this.file(kind, epoch)).catch(() => null))?.size ?? 0;
    return { data: await size('data'), errors: await size('errors') };
  }
}

function holds(
  { data, errors }: Extract<JournalEntry, { k: 'part' }>,
  written: { data: number; errors: number },
): boolean {
  if (data.offset + data.length > written.data) return false;
  return errors === null || errors.offset + errors.length <= written.errors;
}
