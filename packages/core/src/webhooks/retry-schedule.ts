/**
 * When a delivery is tried again: ten attempts over about 75 hours, as Standard Webhooks suggests. Each pause is drawn
 * up to a tenth longer, so that what failed together does not come back together. Pure.
 */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Milliseconds before each attempt; as many attempts as entries. */
export const RETRY_SCHEDULE: readonly number[] = [
  0,
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];

const JITTER = 0.1;
/** A receiver may ask for a longer pause, up to this. */
export const RETRY_AFTER_MOST_MS = 24 * HOUR;

export interface RetryQuestion {
  /** Attempts that have failed, this one included. */
  failed: number;
  /** What Retry-After asked for; 0: nothing. */
  retryAfterMs?: number;
  /** From 0 to below 1. */
  random: number;
  schedule?: readonly number[];
}

/** Milliseconds until the next attempt; null: there is none. */
export function nextAttemptInMs({
  failed,
  retryAfterMs = 0,
  random,
  schedule = RETRY_SCHEDULE,
}: RetryQuestion): number | null {
  const pause = schedule[failed];
  if (pause === undefined) return null;
  const drawn = Math.round(pause * (1 + JITTER * random));
  return Math.max(drawn, Math.min(retryAfterMs, RETRY_AFTER_MOST_MS));
}

/** Milliseconds that a Retry-After header asks for: seconds, or a date. 0: none, or nothing that can be understood. */
export function retryAfterMs(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  // Whoever asks for more years than a number holds is given what is most.
  if (/^\d+$/.test(header.trim())) return Math.min(Number(header) * SECOND, Number.MAX_SAFE_INTEGER);
  const at = Date.parse(header);
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}
