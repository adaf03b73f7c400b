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
 * How often queues are searched for jobs whose lock has run out, in milliseconds. BullMQ lets one of all workers do it
 * in that time, so a dead worker's jobs are free at most a second or so after their locks. For the others it is one
 * small command for each of their queues.
 */
export const STALLED_EVERY_MS = 1_000;

/**
 * How often a job may be found without a lock (its worker died or stood still) before it is failed for good. Batch
 * mates of a poison request are safe whatever this is, and poison itself is blamed long before: models run in runner
 * processes, whose death the worker survives. So a stall is the machine's fault, and a job that is put back goes to the
 * head of its queue, where the next worker to be killed takes it: under rolling kills a few in a row say nothing. What
 * kills one worker after the other still comes to its end.
 */
export const MAX_STALLED_COUNT = 20;

/**
 * How often the sweeper puts back the lost job of one request before it gives up on it. Losses within a minute count
 * as one (a Redis that comes and goes), and items that got their outcome since the last loss begin the count anew.
 */
export const MAX_RESCUES = 10;
export const RESCUES_COUNT_AS_ONE_MS = 60_000;
