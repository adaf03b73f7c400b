/**
 * A creating call that is made once, however often it is sent (Idempotency-Key, draft-ietf-httpapi-idempotency-key-header).
 *
 * The record of the key is made before anything else, for a short lease, and reserves the ids of the requests to come.
 * When the process dies anywhere behind that, the next call with the key goes on with the same ids: what was accepted
 * is known then (submit-request.ts), what was not is accepted now, and nothing is run twice. Only the answer of a call
 * that has accepted something is kept: a refusal has changed nothing, so asking again is safe.
 */
import { createHash } from 'node:crypto';
import { InvalidInputError } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { bulkJobIdFrom, newSeed, reservedRequestId } from '../ids.js';
import type { Metrics } from '../observability/metrics.js';
import type { KeptAnswer, OnceStore } from '../store/once-store.js';
import type { StoreGuard } from './store-guard.js';

/** The id that a request of the call gets where it brings none of its own. */
export interface ReservedId {
  requestId: string;
  /** Stands for the content: that of the whole call is compared by its key. */
  fingerprint: string;
  /** How long the id, or the request's own one, is accepted at most once, even when its record has gone. */
  onceMs: number;
}

export interface OnceCall {
  tenant: string;
  key: string;
  /** Equal for calls of equal content: method, path and body. */
  fingerprint: string;
}

export interface IdempotencyOptions {
  store: OnceStore;
  guard: StoreGuard;
  metrics: Pick<Metrics, 'idempotency'>;
  onError(error: Error): void;
  /** How long a key is remembered, counted from its first call. */
  ttlMs: number;
  /** How long a call may take before another takes over: its process may be dead. */
  leaseMs?: number;
}

/** Longer than the calls of a batch to Redis take; after a crash, what a caller waits at most. */
const LEASE_MS = 10_000;

export class Idempotency {
  readonly #options: IdempotencyOptions;

  constructor(options: IdempotencyOptions) {
    this.#options = options;
  }

  /**
   * The answer that was kept, or a call to be made now, which must be told how it ended.
   * @throws RemudaError idempotency_in_progress, idempotency_mismatch, store_unavailable, store_full
   */
  async begin({ tenant, key, fingerprint }: OnceCall): Promise<KeptAnswer | CallOnce> {
    const { store, guard, metrics, ttlMs, leaseMs = LEASE_MS } = this.#options;
    const keyHash = createHash('sha256')
      .update(JSON.stringify([tenant, key]))
      .digest('base64url');
    const ids = { token: newSeed(), seed: newSeed() };
    const state = await guard.run(() => store.begin(keyHash, fingerprint, ids, { leaseMs, ttlMs }));
    switch (state.kind) {
      case 'answered':
        metrics.idempotency.inc({ outcome: 'replayed' });
        return state.answer;
      case 'busy':
        metrics.idempotency.inc({ outcome: 'in_progress' });
        throw inProgress(state.leftMs);
      case 'mismatch':
        metrics.idempotency.inc({ outcome: 'mismatch' });
        throw mismatch();
      default: {
        const first = state.kind === 'first';
        metrics.idempotency.inc({ outcome: first ? 'first' : 'taken_over' });
        const { token } = ids;
        return new CallOnce({ ...this.#options, keyHash, token, seed: state.seed, fingerprint, first });
      }
    }
  }
}

interface CallOnceOptions extends IdempotencyOptions {
  keyHash: string;
  token: string;
  seed: string;
  fingerprint: string;
  first: boolean;
}

/** A call that is being made: exactly one of `accepted` and `refused` is told at its end. */
export class CallOnce {
  readonly #options: CallOnceOptions;

  constructor(options: CallOnceOptions) {
    this.#options = options;
  }

  /** The same for the same index, whichever process asks. @param index place of the request in the call; 0 for the only one */
  reserve(index: number): ReservedId {
    const { seed, fingerprint, ttlMs } = this.#options;
    return {
      requestId: reservedRequestId(seed, index),
      fingerprint: `once:${fingerprint}:${index}`,
      onceMs: ttlMs,
    };
  }

  /** The id of the bulk job that the call makes: the same one, whichever process asks. */
  reserveJob(): string {
    return bulkJobIdFrom(reservedRequestId(this.#options.seed, 0));
  }

  /**
   * Something was accepted, and this is the answer from now on. Never throws: what is accepted is not taken back
   * because its answer could not be kept; the next call finds the same requests.
   * @param requestIds of everything that was accepted
   */
  async accepted(answer: KeptAnswer, requestIds: readonly string[]): Promise<void> {
    const { store, guard, keyHash, token, onError } = this.#options;
    try {
      const kept = await guard.run(() => store.answered(keyHash, token, answer));
      // Until an answer is kept the ids must be known to whoever goes on with the call.
      if (kept && requestIds.length > 0) store.forgetIds(requestIds).catch(onError);
    } catch (error) {
      onError(error as Error);
    }
  }

  /**
   * Nothing was accepted by this call. The key is free again, unless a call before this one may have accepted
   * something, or this one may have without knowing: then the next call goes on with the same ids.
   * @param errors why: of each request, where there are several
   */
  async refused(...errors: unknown[]): Promise<void> {
    const { store, guard, keyHash, token, first, onError } = this.#options;
    const what = first && errors.every(isCertain) ? 'forget' : 'let_go';
    await guard.run(() => store.drop(keyHash, token, what)).catch(onError);
  }
}

/** Nothing can have been stored of what was refused so. */
function isCertain(error: unknown): boolean {
  return error instanceof InvalidInputError || (error instanceof RemudaError && !error.retryable);
}

function inProgress(leftMs: number): RemudaError {
  const seconds = Math.max(1, Math.ceil(leftMs / 1_000));
  return new RemudaError(
    'idempotency_in_progress',
    'the first call with this Idempotency-Key has not been answered yet: send it again when Retry-After has passed',
    { retry_after_s: seconds },
  );
}

function mismatch(): RemudaError {
  return new RemudaError(
    'idempotency_mismatch',
    'this Idempotency-Key was used for a call with another method, path or body: send this one under another key',
  );
}
