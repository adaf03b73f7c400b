/**
 * What a life of a coordinator has done since it was last told: rows for the metrics, and the time at work, which goes into
 * the journal, so that a crash loses little of it.
 */
import type { Clock } from '../../lifecycle/clock.js';
import type { WorkLog } from './work-log.js';

export interface CoordinatorCounts {
  rows: number;
  failed: number;
  repeated: number;
  chunksInFlight: number;
}

/** Time at work is noted at least this often. */
const NOTE_EVERY_MS = 10_000;

export interface WorkMeterOptions {
  clock: Clock;
  report(counts: CoordinatorCounts): void;
  chunksInFlight(): number;
}

export class WorkMeter {
  readonly #options: WorkMeterOptions;
  #log: WorkLog | undefined;
  #since: number | null = null;
  #repeated = 0;
  #reported = { rows: 0, failed: 0, repeated: 0 };
  #before = { rows: 0, failed: 0 };

  constructor(options: WorkMeterOptions) {
    this.#options = options;
  }

  get isAtWork(): boolean {
    return this.#since !== null;
  }

  /** False: nothing that was done since begin() has been told yet. */
  get hasReported(): boolean {
    return this.#reported.rows > 0;
  }

  /** Rows that run again, since they were last noted. */
  get rowsRepeated(): number {
    return this.#repeated;
  }

  /** Since it was last noted; 0 while not at work. */
  get seconds(): number {
    return this.#since === null ? 0 : (this.#options.clock.now() - this.#since) / 1000;
  }

  begin(log: WorkLog): void {
    this.#log = log;
    this.#since = this.#options.clock.now();
    this.#before = { rows: log.ledger.rowsDone, failed: log.ledger.rowsFailed };
    this.#reported = { rows: 0, failed: 0, repeated: this.#reported.repeated };
  }

  async end(): Promise<void> {
    this.report();
    await this.note();
    this.#since = null;
  }

  repeated(rows: number): void {
    this.#repeated += rows;
  }

  report(): void {
    if (!this.#log) return;
    const { rowsDone, rowsFailed } = this.#log.ledger;
    const now = {
      ...{ rows: rowsDone - this.#before.rows, failed: rowsFailed - this.#before.failed },
      repeated: this.#repeated,
    };
    const since = (name: keyof typeof now): number => Math.max(0, now[name] - this.#reported[name]);
    this.#options.report({
      ...{ rows: since('rows'), failed: since('failed'), repeated: since('repeated') },
      chunksInFlight: this.#options.chunksInFlight(),
    });
    this.#reported = now;
  }

  /** Into the journal, where it is time for that. */
  async noteWhereDue(): Promise<void> {
    if (this.seconds * 1000 >= NOTE_EVERY_MS) await this.note();
  }

  async note(): Promise<void> {
    if (this.#since === null || !this.#log) return;
    this.report();
    const { seconds } = this;
    const repeated = this.#repeated;
    this.#since = this.#options.clock.now();
    this.#repeated = 0;
    this.#reported.repeated = 0;
    await this.#log.write({ k: 'worked', seconds, repeated });
  }
}
