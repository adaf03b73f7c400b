/**
 * Whether a request can be expected to begin, and to end, by its deadlines, from what its route says of the queue and
 * of the length of runs. Pure. What is late by more than the margin is refused before anything is stored; what may be
 * late is accepted, with a notice.
 */
import type { Route } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import type { Deadlines } from './deadlines-of.js';

/**
 * Refused is what is expected to take more than so many times what is allowed. The prediction was measured to be wrong
 * by 9 % (p50) and 16 % (p90): see docs/benchmarks.md.
 */
export const MARGIN = 1.25;

/** What is expected, in milliseconds from now. */
export interface Prediction {
  rowsAhead: number;
  startMs: number;
  finishMs: number;
}

/** null: nothing was measured, or no worker is ready. @param rowsAhead where that is known better than the route does */
export function predict({ candidates }: Route, rowsAhead?: number): Prediction | null {
  const chosen = candidates?.find(({ verdict }) => verdict === 'chosen');
  if (chosen?.seconds_per_row == null || chosen.expected_s === null) return null;
  const { rows_ahead, seconds_per_row, expected_s } = chosen;
  const rows = Math.min(rows_ahead, rowsAhead ?? rows_ahead);
  const ownMs = Math.max(0, expected_s - rows_ahead * seconds_per_row) * 1000;
  const startMs = Math.round(rows * seconds_per_row * 1000);
  return { rowsAhead: rows, startMs, finishMs: Math.round(startMs + ownMs) };
}

/** That a deadline is not expected to be met, for who sends it; undefined: both are, or there is none. */
export function lateNotice(
  prediction: Prediction | null,
  deadlines: Deadlines,
  now: number,
): string | undefined {
  if (!prediction) return undefined;
  const { rowsAhead, startMs, finishMs } = prediction;
  const { start, finish } = allowed(deadlines, now);
  if (startMs > start)
    return `it is expected to begin in ${startMs} ms, after its deadline of ${start} ms: ${rowsAhead} rows are ahead`;
  if (finishMs > finish)
    return `it is expected to end in ${finishMs} ms, after its deadline of ${finish} ms: ${rowsAhead} rows are ahead`;
  return undefined;
}

export interface Staleness {
  /** How old what the prediction is made of may be: the queue may have drained for so long since. */
  factsMs: number;
  /** How long ago a run was measured; Infinity: not known. */
  runMs: number;
}

/** For so long after a run what is known of its length decides; later the next request finds out. */
const BELIEVED_MS = 30_000;

/** The refusal of a request that cannot be expected to meet its deadlines even with the margin; undefined: it may. */
export function unreachable(
  prediction: Prediction | null,
  deadlines: Deadlines,
  now: number,
  { factsMs, runMs }: Staleness,
): RemudaError | undefined {
  if (!prediction) return undefined;
  const { start, finish } = allowed(deadlines, now);
  const { rowsAhead, startMs, finishMs } = prediction;
  const ownMs = runMs <= BELIEVED_MS ? finishMs - startMs : 0;
  const bestStartMs = Math.max(0, startMs - factsMs);
  const lateStart = bestStartMs > start * MARGIN;
  const lateFinish = bestStartMs + ownMs > finish * MARGIN;
  if (!lateStart && !lateFinish) return undefined;
  const allowedMs = lateStart ? start : finish;
  const text = lateStart
    ? `it would begin in about ${startMs} ms, and its deadline to start is in ${start} ms`
    : `it would end in about ${finishMs} ms, and its deadline to finish is in ${finish} ms`;
  const waitMs = reachableInMs(prediction, { start, finish });
  const hint =
    waitMs === null
      ? 'its own run takes longer than that: allow more time'
      : `${rowsAhead} rows are ahead: allow more time, or send it again later`;
  return new RemudaError('deadline_unreachable', `${text}; ${hint}`, {
    predicted_start_ms: startMs,
    predicted_finish_ms: finishMs,
    allowed_ms: allowedMs,
    rows_ahead: rowsAhead,
    retry_after_s: waitMs === null ? null : Math.max(1, Math.ceil(waitMs / 1000)),
  });
}

/** When it could be met, if the queue drains and nothing else comes; null: never, as its own run is too long. */
function reachableInMs(
  { startMs, finishMs }: Prediction,
  { start, finish }: { start: number; finish: number },
): number | null {
  if (finishMs - startMs > finish) return null;
  return Math.max(startMs - start, finishMs - finish, 0);
}

/** Milliseconds from now; Infinity: there is no such deadline. */
function allowed({ start, finish }: Deadlines, now: number): { start: number; finish: number } {
  const left = (at: number): number => (at === 0 ? Number.POSITIVE_INFINITY : Math.max(0, at - now));
  return { start: left(start), finish: left(finish) };
}
