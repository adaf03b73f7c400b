/**
 * What is tried again, and when. Input errors never come here: they are outcomes, written like any other. What does
 * is trouble around the model (no runner could be started, Redis lost a script), and that may pass.
 */

/** Attempts of a job whose handler threw. A hand-back at a drain and a stall are not counted among these. */
export const JOB_ATTEMPTS = 5;

/** Longest pause between attempts, in milliseconds. */
const MAX_BACKOFF_MS = 15_000;
const FIRST_BACKOFF_MS = 250;

/** Exponential with full jitter over its upper half, so that workers that fail together do not return together. */
export function backoffMs(attempt: number, random: () => number = Math.random): number {
  const ceiling = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.max(0, attempt - 1));
  return Math.round(ceiling * (0.5 + random() / 2));
}

/**
 * How often a job may be found without a lock (its worker died or stood still) before it is failed for good. Batch
 * mates of a poison request are safe whatever this is: models run in runner processes, whose death the worker
 * survives. So a stall is the machine's fault far more often than the job's.
 */
export const MAX_STALLED_COUNT = 3;

/** How often the sweeper puts back the lost job of one request before it gives up on it. */
export const MAX_RESCUES = 3;
