/**
 * Which rows of a job are done, which are under way, and where the input has been cut: what the entries of the journal
 * come to, whether they are read after a crash or written now. The same code does both, so that a coordinator that comes
 * back knows what the one before knew.
 */
import type { InputPosition } from '../input/bulk-input.js';
import { INPUT_START } from '../input/bulk-input.js';
import type { CutPiece, Extent, JournalEntry, PartEntry, Settled } from './journal-entries.js';
import { aroundKilled, halves } from './splitting.js';

/** Rows that have no answer yet. They lie in one piece. */
export interface Task {
  firstRow: number;
  rows: number;
}

/** A part that counts, and where it is found. */
export interface Part {
  firstRow: number;
  rows: number;
  failed: number;
  /** Of the life that wrote it. */
  epoch: number;
  data: Extent;
  errors: Extent | null;
  /** Its line in the journal: what joining needs of it is read again there. */
  line: Extent;
}

/** A part with failures whose rows run anew: it counts until all of them have a new answer. */
interface Stale {
  part: Part;
  fresh: Part[];
}

export interface DeviceShare {
  worker_id: string;
  device: string;
  rows: number;
  device_seconds: number;
}

/** Failures that are kept to be shown. */
const SHOWN_FAILURES = 5;

export class Ledger {
  settled: Settled | null = null;
  /** Where the next piece begins. */
  next: InputPosition = INPUT_START;
  /** Rows of the whole input; null: its end has not been seen. */
  rowsTotal: number | null = null;
  byPayload = false;
  /** An output has been put in its place before, or nearly. */
  given = false;
  round = 0;
  forgiven = 0;
  workedSeconds = 0;
  rowsRepeated = 0;
  bytesCut = 0;
  partsDone = 0;
  rowsDone = 0;
  rowsFailed = 0;
  deviceSeconds = 0;
  readonly firstFailures: { row: number; code: string; message: string }[] = [];
  /** In order of their rows: those of which rows may have to run yet. All of a large input would fill the memory. */
  readonly pieces: CutPiece[] = [];
  readonly devices = new Map<string, DeviceShare>();
  readonly #tasks = new Map<number, Task>();
  #source: CutPiece['source'] = null;
  readonly #parts = new Map<number, Part>();
  readonly #stale = new Map<number, Stale>();
  /** In the order in which they were done. */
  #recent: Part[] = [];

  /** @param at where it stands in the journal of that life */
  apply(entry: JournalEntry, epoch: number, at: Extent): void {
    switch (entry.k) {
      case 'settled':
        this.settled = entry.settled;
        return;
      case 'cut':
        this.#cut(entry);
        return;
      case 'end':
        this.rowsTotal = entry.rows;
        return;
      case 'split':
        this.#split(entry);
        return;
      case 'part':
        this.#part(entry, epoch, at);
        return;
      case 'payload':
        this.byPayload = true;
        return;
      case 'worked':
        this.workedSeconds += entry.seconds;
        this.rowsRepeated += entry.repeated;
        return;
      case 'forgive':
        this.forgiven = entry.failed;
        return;
      case 'give':
        this.given = true;
        return;
      case 'retry':
        this.#retry(entry.round);
        return;
      case 'life':
        return;
    }
  }

  /** Rows that were cut and have no answer, in order of their rows. */
  tasks(): Task[] {
    return [...this.#tasks.values()].sort((a, b) => a.firstRow - b.firstRow);
  }

  /** Whether a row has an answer that counts until there is a newer one. */
  isStale(row: number): boolean {
    return this.#staleOf(row) !== undefined;
  }

  get openTasks(): number {
    return this.#tasks.size;
  }

  /** The piece that a row lies in; one whose rows are all answered well is not known any more. */
  pieceOf(row: number): CutPiece {
    return this.pieces[this.#placeOf(row)] as CutPiece;
  }

  #placeOf(row: number): number {
    let low = 0;
    let high = this.pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.pieces[middle] as CutPiece).firstRow <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** What makes the output, each row once. @param order rows: as in the input. done: as they were done. */
  parts(order: 'rows' | 'done' = 'rows'): Part[] {
    const parts = [...this.#parts.values()];
    for (const { part } of this.#stale.values()) parts.push(part);
    if (order === 'rows') parts.sort((a, b) => a.firstRow - b.firstRow);
    return parts;
  }

  /** Rows that were answered last: those of which a life before this one may have left chunks in Redis. */
  takeRecent(): Part[] {
    const recent = this.#recent;
    this.#recent = [];
    return recent;
  }

  get rowsOpen(): number {
    let rows = 0;
    for (const task of this.#tasks.values()) rows += task.rows;
    return rows;
  }

  #cut({ k, ...piece }: Extract<JournalEntry, { k: 'cut' }>): void {
    const last = this.#source;
    // One object for all pieces of a file.
    if (last && piece.source?.path === last.path && piece.source.mtimeMs === last.mtimeMs)
      piece.source = last;
    this.#source = piece.source;
    this.pieces.push(piece);
    this.next = piece.next;
    this.bytesCut += piece.bytes;
    this.#tasks.set(piece.firstRow, { firstRow: piece.firstRow, rows: piece.rows });
  }

  #split({ firstRow, rows, killed }: Extract<JournalEntry, { k: 'split' }>): void {
    const task = this.#tasks.get(firstRow);
    if (task?.rows !== rows || !this.settled) return;
    const { batchRows } = this.settled;
    const parts = killed ? aroundKilled(task, killed, batchRows) : halves(task, batchRows);
    for (const part of parts) this.#tasks.set(part.firstRow, part);
  }

  #part(entry: PartEntry, epoch: number, line: Extent): void {
    const { firstRow, rows, failed, data, errors } = entry;
    const part: Part = { firstRow, rows, failed, epoch, data, errors, line };
    if (this.#tasks.get(firstRow)?.rows !== rows) return;
    this.#tasks.delete(firstRow);
    this.#count(part, 1);
    this.#credit(entry);
    this.#recent.push(part);
    if (this.#recent.length > 256) this.#recent = this.#recent.slice(-128);
    const stale = this.#staleOf(firstRow);
    if (!stale) this.#parts.set(firstRow, part);
    else this.#refresh(stale, part);
    if (failed === 0) this.#drop(part);
  }

  /** A piece that was answered in one, without a failure: nothing of it runs again. */
  #drop({ firstRow, rows }: Part): void {
    const place = this.#placeOf(firstRow);
    const piece = this.pieces[place];
    if (piece?.firstRow === firstRow && piece.rows === rows) this.pieces.splice(place, 1);
  }

  #refresh(stale: Stale, part: Part): void {
    stale.fresh.push(part);
    const rows = stale.fresh.reduce((sum, one) => sum + one.rows, 0);
    if (rows < stale.part.rows) return;
    this.#stale.delete(stale.part.firstRow);
    for (const one of stale.fresh) this.#parts.set(one.firstRow, one);
  }

  #staleOf(row: number): Stale | undefined {
    if (this.#stale.size === 0) return undefined;
    const exact = this.#stale.get(row);
    if (exact) return exact;
    for (const stale of this.#stale.values()) {
      const { firstRow, rows } = stale.part;
      if (row >= firstRow && row < firstRow + rows) return stale;
    }
    return undefined;
  }

  #retry(round: number): void {
    this.round = round;
    this.firstFailures.length = 0;
    for (const part of [...this.#parts.values()]) {
      if (part.failed === 0) continue;
      this.#parts.delete(part.firstRow);
      this.#stale.set(part.firstRow, { part, fresh: [] });
      this.#count(part, -1);
      this.#tasks.set(part.firstRow, { firstRow: part.firstRow, rows: part.rows });
    }
    // What was under way when an earlier round was left is under way still.
    this.forgiven = 0;
  }

  #count({ rows, failed }: Part, sign: 1 | -1): void {
    this.partsDone += sign;
    this.rowsDone += sign * rows;
    this.rowsFailed += sign * failed;
  }

  #credit({ worker, device, rows, seconds, failures = [] }: PartEntry): void {
    this.deviceSeconds += seconds;
    const room = SHOWN_FAILURES - this.firstFailures.length;
    if (room > 0) this.firstFailures.push(...failures.slice(0, room));
    // Of a row that nobody could run.
    if (worker === '') return;
    const key = `${worker} ${device}`;
    const share = this.devices.get(key) ?? { worker_id: worker, device, rows: 0, device_seconds: 0 };
    share.rows += rows;
    share.device_seconds += seconds;
    this.devices.set(key, share);
  }
}
