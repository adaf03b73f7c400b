/**
 * The middle of a job: cuts pieces off the input and has them carried to their answers, a window of them at a time,
 * until all rows are answered or something else is wanted. What a life before has cut goes first.
 */
import { RemudaError } from '../../errors.js';
import type { ModelPace } from '../chunk-door.js';
import type { OpenedInput, Piece } from '../input/bulk-input.js';
import type { BulkSpec } from '../job-record.js';
import { Bell } from './bell.js';
import type { ChunkCarrier } from './chunk-carrier.js';
import { errorsOfJob } from './error-limit.js';
import type { Settled } from './journal-entries.js';
import type { Task } from './ledger.js';
import type { ChunkSizes } from './sizing.js';
import { mayStart, WINDOW, type WindowLimits } from './window.js';
import type { WorkLog } from './work-log.js';

/**
 * drain: what is under way is finished, nothing more is begun. cut: what is under way is ended. leave: it is left where
 * it is, for the next life to find.
 */
export type StopMode = 'drain' | 'cut' | 'leave';

/** Of the input, where it is cut small anyway. */
const PIECE_BYTES = { byReference: 64 * 1024 * 1024, byPayload: 8 * 1024 * 1024 };

export interface ScoringDeps {
  spec: BulkSpec;
  settled: Settled;
  log: WorkLog;
  input: OpenedInput;
  sizes: ChunkSizes;
  pace(): ModelPace;
  /** What else is wanted now; null: it goes on. */
  stop(): StopMode | null;
  /** Nothing more is cut: only what has failed runs anew. */
  cutNoMore?: boolean;
  limits?: WindowLimits;
}

export interface UnderWayFacts {
  rows: number;
  chunks: number;
}

export class Scoring {
  readonly #deps: ScoringDeps;
  readonly #bell = new Bell();
  readonly #abort = new AbortController();
  readonly #tasks = new Map<Task, { bytes: number; ended: boolean }>();
  #carrier!: ChunkCarrier;
  #waiting: { task: Task; resumed: boolean }[];
  /** drain: what is under way is finished first: it is not what failed. */
  #failure: { error: unknown; drain: boolean } | undefined;
  #ended = false;

  constructor(deps: ScoringDeps) {
    this.#deps = deps;
    this.#waiting = deps.log.ledger.tasks().map((task) => ({ task, resumed: true }));
    this.#ended = deps.cutNoMore === true || deps.log.ledger.rowsTotal !== null;
  }

  /** Something may have changed: what is wanted, the fleet. */
  wake(): void {
    this.#bell.ring();
  }

  get underWay(): UnderWayFacts {
    let rows = 0;
    for (const task of this.#tasks.keys()) rows += task.rows;
    return { rows, chunks: this.#tasks.size };
  }

  ended(task: Task, bytes: number): void {
    const place = this.#tasks.get(task);
    if (place) Object.assign(place, { ended: true, bytes: place.bytes + bytes });
    this.#bell.ring();
  }

  /**
   * @returns all: every row has its answer. stopped: something else was wanted.
   * @throws RemudaError, PauseJob: it cannot go on; nothing is under way any more
   */
  async run(carrier: ChunkCarrier): Promise<'all' | 'stopped'> {
    this.#carrier = carrier;
    for (;;) {
      const stop = this.#wanted();
      if (stop === 'cut' || stop === 'leave') this.#abort.abort();
      if (stop === null)
        await this.#fill().catch((error: unknown) => this.#fail(error, error instanceof RemudaError));
      if (stop === null && this.#failure) continue;
      if (this.#tasks.size === 0 && (stop !== null || this.#nothingLeft())) break;
      await this.#bell.heard();
    }
    if (this.#failure) throw this.#failure.error;
    return this.#nothingLeft() ? 'all' : 'stopped';
  }

  #wanted(): StopMode | null {
    if (!this.#failure) return this.#deps.stop();
    return this.#failure.drain ? (this.#deps.stop() ?? 'drain') : 'cut';
  }

  #nothingLeft(): boolean {
    return this.#ended && this.#deps.log.ledger.openTasks === 0;
  }

  async #fill(): Promise<void> {
    while (this.#hasRoom() && this.#deps.stop() === null && !this.#failure) {
      const next = this.#waiting.shift() ?? (await this.#cut());
      if (!next) return;
      this.#start(next.task, next.resumed);
    }
  }

  #hasRoom(): boolean {
    const under = { sent: 0, unwritten: 0, bytes: 0 };
    for (const { bytes, ended } of this.#tasks.values()) {
      if (ended) under.unwritten++;
      else under.sent++;
      under.bytes += bytes;
    }
    const { devices } = this.#deps.pace();
    const each = this.#tasks.size > 0 ? under.bytes / this.#tasks.size : 0;
    return mayStart(under, { devices, bytes: each }, this.#deps.limits ?? WINDOW);
  }

  async #cut(): Promise<{ task: Task; resumed: false } | null> {
    const { input, log, sizes, settled, pace } = this.#deps;
    if (this.#ended) return null;
    const { byPayload } = log.ledger;
    const rows = sizes.next(pace());
    const bytes = byPayload ? PIECE_BYTES.byPayload : PIECE_BYTES.byReference;
    const piece = await input.cut(log.ledger.next, { rows, multipleOf: settled.batchRows, bytes });
    if (!piece) {
      await log.commit({ k: 'end', rows: log.ledger.next.row });
      this.#ended = true;
      return null;
    }
    checkUnchanged(piece, settled);
    const { firstRow, rows: count, range, source, bytes: size, next } = piece;
    const at = log.ledger.next;
    await log.write({ k: 'cut', firstRow, rows: count, at, next, range, source, bytes: size });
    return { task: { firstRow, rows: count }, resumed: false };
  }

  #start(task: Task, resumed: boolean): void {
    const { log } = this.#deps;
    const piece = log.ledger.pieceOf(task.firstRow);
    const byPayload = log.ledger.byPayload || piece.range.kind === 'payload';
    this.#tasks.set(task, { bytes: byPayload ? piece.bytes : 0, ended: false });
    this.#carrier
      .carry(task, resumed, this.#abort.signal)
      .then(async () => {
        if (this.#abort.signal.aborted && this.#isCut()) await this.#carrier.cancel(task);
        this.#parted(task);
      })
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#tasks.delete(task);
        this.#bell.ring();
      });
  }

  #isCut(): boolean {
    if (!this.#failure || this.#failure.drain) return this.#deps.stop() === 'cut';
    return this.#failure.error instanceof RemudaError;
  }

  /** Where it ended in halves, those are what goes next. */
  #parted({ firstRow, rows }: Task): void {
    const { ledger } = this.#deps.log;
    this.#tooMany();
    const halves = ledger
      .tasks()
      .filter((task) => task.firstRow >= firstRow && task.firstRow < firstRow + rows);
    if (halves.length < 2) return;
    this.#waiting.unshift(...halves.map((task) => ({ task, resumed: false })));
  }

  #tooMany(): void {
    const { log, spec } = this.#deps;
    const error = errorsOfJob(spec.maxErrors, log.ledger, this.#nothingLeft());
    if (error) this.#fail(error);
  }

  #fail(error: unknown, drain = false): void {
    this.#failure ??= { error, drain };
    if (!drain) this.#failure.drain = false;
    this.#bell.ring();
  }
}

/** @throws RemudaError where the file is not the one that was opened at the start */
export function checkUnchanged(
  { source, firstRow }: Pick<Piece, 'source' | 'firstRow'>,
  settled: Settled,
): void {
  if (!source || source.path !== settled.path || settled.mtimeMs === 0) return;
  if (source.bytes === settled.bytes && source.mtimeMs === settled.mtimeMs) return;
  throw changed(settled, source, firstRow);
}

export function changed(
  { path, bytes, mtimeMs }: Settled,
  now: { bytes: number; mtimeMs: number },
  row: number,
): RemudaError {
  const time = (ms: number): string => new Date(ms).toISOString();
  return new RemudaError(
    'invalid_file',
    `${path} has changed since the job began: it had ${bytes} bytes of ${time(mtimeMs)} and has ${now.bytes} of ${time(now.mtimeMs)}; rows before ${row} were read from it as it was. Start a new job for the file as it is now, or put the old one back and resume`,
    { path },
  );
}
