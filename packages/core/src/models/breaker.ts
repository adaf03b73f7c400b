/**
 * The breaker of one model version on one device: after batches that keep failing for a reason of the model or its
 * runner, nothing is run there for a while, so that jobs go to who can run them. Pure; time is passed in.
 *
 * Rule: `closed` → `open` after 5 batches in a row of which no item succeeded and at least one failed with one of
 * BREAKER_CODES. Bad input, passed deadlines and what was thrown away neither count nor interrupt the row. `open` lasts
 * 1 s, twice as long after each probe that fails, at most 30 s; then `half_open` lets one batch through, and that batch
 * closes or opens it. One item that succeeds closes it at any time.
 */
import type { ErrorCode } from '@remuda/schemas';

/** How an item can fail that speaks against the model, the device or the runner, and not against the item. */
export const BREAKER_CODES: readonly ErrorCode[] = [
  'inference_failed',
  'output_mismatch',
  'runner_crashed',
  'run_timeout',
  'model_load_failed',
];

export type BreakerState = 'closed' | 'open' | 'half_open';

/** What a batch says about its model. neutral: nothing. */
export type BatchVerdict = 'good' | 'bad' | 'neutral';

/** How an item of a batch ended, as far as the breaker asks. */
export type ItemVerdict = { ok: true } | { ok: false; code: string | undefined };

export function verdictOf(items: readonly ItemVerdict[]): BatchVerdict {
  if (items.some((item) => item.ok)) return 'good';
  const codes: readonly string[] = BREAKER_CODES;
  const speaksAgainst = items.some(
    (item) => !item.ok && item.code !== undefined && codes.includes(item.code),
  );
  return speaksAgainst ? 'bad' : 'neutral';
}

export interface BreakerOptions {
  /** Bad batches in a row that open it. Default 5. */
  failures?: number;
  /** Milliseconds of the first pause. Default 1,000. */
  pauseMs?: number;
  /** Longest pause, in milliseconds. Default 30,000. */
  maxPauseMs?: number;
}

const DEFAULTS = { failures: 5, pauseMs: 1_000, maxPauseMs: 30_000 };

export class Breaker {
  readonly #options: typeof DEFAULTS;
  #failures = 0;
  #pauseMs: number;
  /** Unix milliseconds at which the pause ends; null: closed. */
  #openUntil: number | null = null;

  constructor(options: BreakerOptions = {}) {
    this.#options = { ...DEFAULTS, ...options };
    this.#pauseMs = this.#options.pauseMs;
  }

  state(now: number): BreakerState {
    if (this.#openUntil === null) return 'closed';
    return now < this.#openUntil ? 'open' : 'half_open';
  }

  /** Milliseconds until a batch may be tried; 0: now. */
  retryAfterMs(now: number): number {
    return Math.max(0, (this.#openUntil ?? now) - now);
  }

  /** Takes in what came of a batch. @returns true when this has opened it */
  record(verdict: BatchVerdict, now: number): boolean {
    if (verdict === 'good') this.#close();
    if (verdict !== 'bad') return false;
    const state = this.state(now);
    // Batches that were under way when it opened say nothing new.
    if (state === 'open') return false;
    this.#failures++;
    if (state === 'closed' && this.#failures < this.#options.failures) return false;
    if (state === 'half_open') this.#pauseMs = Math.min(this.#options.maxPauseMs, this.#pauseMs * 2);
    this.#openUntil = now + this.#pauseMs;
    return true;
  }

  #close(): void {
    this.#failures = 0;
    this.#pauseMs = this.#options.pauseMs;
    this.#openUntil = null;
  }
}
