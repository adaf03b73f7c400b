/** How a runner process ended, and what that means for each batch that was in it. */

/** hung: its main thread no longer answered. stopped: we told it to go. */
export type EndReason = 'crashed' | 'timed_out' | 'hung' | 'stopped';

export interface RunnerEnd {
  reason: EndReason;
  signal: NodeJS.Signals | null;
  code: number | null;
  pid: number | null;
}

export interface LostBatch {
  batchId: string;
  /** It was running natively at that moment; else it was only waiting, fetching or writing. */
  wasRunning: boolean;
  /** It may be what ended the runner. False: it is known to be innocent. */
  suspect: boolean;
  /** How many batches are suspect. 1, and suspect: it was this one, or a kill from outside. */
  suspects: number;
}

/** How far a batch of several runs had got. */
export interface LostRows {
  done: number;
  running: number;
}

/** The runner ended before it answered. */
export class RunnerLostError extends Error {
  override readonly name = 'RunnerLostError';
  /** timed_out: this batch's own run was too long. */
  readonly reason: 'crashed' | 'timed_out';
  readonly signal: NodeJS.Signals | null;
  readonly code: number | null;
  readonly batchId: string;
  readonly wasRunning: boolean;
  readonly suspect: boolean;
  readonly suspects: number;
  /** Rows of the batch whose runs had ended, and of those under way. */
  readonly rows: LostRows;

  constructor(end: RunnerEnd, lost: LostBatch, rows: LostRows = { done: 0, running: 0 }) {
    super(`the runner ended before it answered: ${endText(end)}`);
    this.reason = end.reason === 'timed_out' && lost.suspect ? 'timed_out' : 'crashed';
    this.signal = end.signal;
    this.code = end.code;
    this.batchId = lost.batchId;
    this.wasRunning = lost.wasRunning;
    this.suspect = lost.suspect;
    this.suspects = lost.suspects;
    this.rows = rows;
  }
}

/** crashed (SIGSEGV), hung, stopped, … */
export function endText({ reason, signal, code }: RunnerEnd): string {
  return reason === 'crashed' ? `crashed (${signal ?? `exit code ${code}`})` : reason.replace('_', ' ');
}

/** What is known of a batch, at the moment of the end. */
export interface InsideBatch {
  batchId: string;
  running: boolean;
}

/**
 * Who may be guilty. A run killed for its time is known by name; otherwise those that ran natively, and if none did,
 * all that were inside, since decoding is native code, too.
 */
export function assignSuspicion(
  inside: readonly InsideBatch[],
  end: RunnerEnd,
  timedOut: string | undefined,
): LostBatch[] {
  const running = inside.filter((batch) => batch.running);
  const accidental = end.reason === 'crashed' || end.reason === 'hung';
  const suspected = accidental ? (running.length > 0 ? running : inside) : [];
  const suspects = timedOut === undefined ? suspected.map((batch) => batch.batchId) : [timedOut];
  return inside.map(({ batchId, running: wasRunning }) => ({
    batchId,
    wasRunning,
    suspect: suspects.includes(batchId),
    suspects: suspects.length,
  }));
}
