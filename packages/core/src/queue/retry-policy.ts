/**
 * How a job comes back to its queue. Which errors are tried again, how often and with what pauses, is said by
 * retries/error-classes.ts; input errors never come here: they are outcomes, written like any other.
 */
import { MOST_ATTEMPTS } from '@remuda/schemas';
import { DEFAULT_RULES, pauseMs } from '../retries/error-classes.js';

/** What BullMQ allows; the worker ends a request before that, when its rule is spent. Hand-backs and stalls do not count. */
export const JOB_ATTEMPTS = MOST_ATTEMPTS;

/** Thrown by the handler of a job that is to have another attempt. */
export class TryAgainError extends Error {
  override readonly name = 'TryAgainError';
  constructor(
    message: string,
    /** Milliseconds. */
    readonly afterMs: number,
  ) {
    super(message);
  }
}

/** Pause in milliseconds: what the handler asked for; after anything else as after trouble around the model. */
export function pauseAfter(failures: number, error: Error | undefined): number {
  if (error instanceof TryAgainError) return error.afterMs;
  return pauseMs(DEFAULT_RULES.infrastructure, failures);
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
