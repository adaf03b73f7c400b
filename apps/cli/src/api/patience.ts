/**
 * Sends again what was refused for the load of the server, when the server says so: Retry-After, and a little more, so
 * that callers who were told the same do not come together. Safe, since a refusal means that nothing was accepted.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { ProblemError } from './api-client.js';

/** Of the whole second that Retry-After is told in. */
const SPREAD_MS = 1_000;
/** Where the server does not say. */
const UNTOLD_MS = 2_000;

export interface PatienceOptions {
  /** Longest time from the first call on, in seconds; what would come later is not waited for. 0: no second call. */
  seconds: number;
  /** Told before each wait. */
  onWait(problem: ProblemError, ms: number): void;
  sleep?(ms: number): Promise<unknown>;
  now?(): number;
  /** From 0 to below 1. */
  random?(): number;
}

/** @throws what `send` throws last; at once where that is no refusal that another try can help */
export async function withPatience<T>(send: () => Promise<T>, options: PatienceOptions): Promise<T> {
  const { seconds, onWait, sleep = pause, now = Date.now, random = Math.random } = options;
  const until = now() + seconds * 1_000;
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof ProblemError) || !isRefusal(error)) throw error;
      const told = error.retryAfterS === undefined ? UNTOLD_MS : error.retryAfterS * 1_000;
      const ms = told + random() * SPREAD_MS;
      if (now() + ms > until) throw error;
      onWait(error, ms);
      await sleep(ms);
    }
  }
}

function isRefusal({ status, problem }: ProblemError): boolean {
  return problem.retryable && (status === 429 || status === 503);
}
