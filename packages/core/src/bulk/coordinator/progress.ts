/** Progress of a job as it is shown: what the ledger says, with a speed over the last half minute. */
import type { BulkProgress } from '@remuda/schemas';
import type { Ledger } from './ledger.js';

const SPAN_MS = 30_000;
/** A speed over less than this says little. */
const LEAST_SPAN_MS = 500;

export interface ProgressFacts {
  rowsInFlight: number;
  chunksInFlight: number;
  /** Of the input, up to where it has been cut. */
  bytesRead: number;
  rowsRepeated: number;
  /** Since this life began to work, in seconds; 0 while it does not. */
  workingSeconds: number;
}

export class ProgressMeter {
  #samples: { at: number; rows: number }[] = [];

  /** @param now Unix milliseconds */
  read(ledger: Ledger, facts: ProgressFacts, now: number): BulkProgress {
    const rowsPerS = this.#speed(ledger.rowsDone, now);
    const total = ledger.rowsTotal ?? ledger.settled?.totalRows ?? null;
    const expected = total ?? guessedRows(ledger, facts.bytesRead);
    const left = expected === null ? null : Math.max(0, expected - ledger.rowsDone);
    return {
      rows_total: total,
      rows_done: ledger.rowsDone,
      rows_failed: ledger.rowsFailed,
      rows_in_flight: facts.rowsInFlight,
      bytes_total: ledger.settled?.totalBytes ?? null,
      bytes_read: facts.bytesRead,
      chunks_done: ledger.partsDone,
      chunks_in_flight: facts.chunksInFlight,
      rows_repeated: ledger.rowsRepeated + facts.rowsRepeated,
      rows_per_s: rowsPerS === null ? null : rounded(rowsPerS),
      eta_s: left === null || !rowsPerS ? null : rounded(left / rowsPerS),
      elapsed_s: rounded(ledger.workedSeconds + facts.workingSeconds),
      device_seconds: rounded(ledger.deviceSeconds),
      devices: [...ledger.devices.values()].map((share) => ({
        ...share,
        device_seconds: rounded(share.device_seconds),
      })),
    };
  }

  #speed(rows: number, now: number): number | null {
    const last = this.#samples.at(-1);
    // Rows that run anew are taken off what is done.
    if (last && last.rows > rows) this.#samples = [];
    this.#samples.push({ at: now, rows });
    while (this.#samples.length > 2 && (this.#samples[1] as { at: number }).at <= now - SPAN_MS)
      this.#samples.shift();
    const [first] = this.#samples;
    if (!first || now - first.at < LEAST_SPAN_MS || rows === 0) return null;
    return ((rows - first.rows) * 1000) / (now - first.at);
  }
}

/** Of a file whose rows are not counted yet: as if the rest of it were like what was read. */
function guessedRows({ settled, next }: Ledger, bytesRead: number): number | null {
  if (!settled?.totalBytes || bytesRead === 0) return null;
  return next.row * Math.max(1, settled.totalBytes / bytesRead);
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
