/**
 * A load that failed: tried again when the files, the configuration or the desired state have changed; and where the
 * reason may pass by itself, after a pause that grows.
 */
import { RemudaError, RUNNER_DIED } from '@remuda/core/errors';

/** Reasons that stand in the files or the configuration: another try gives the same. */
const LASTING = new Set(['model_load_failed', 'golden_mismatch', 'version_not_found']);
const PAUSE_MS = { first: 2_000, most: 300_000 };

/** Says of itself that the reason may pass: another worker goes away, memory becomes free. */
export class PassingLoadError extends RemudaError {
  override readonly name = 'PassingLoadError';
  constructor(message: string, details: Record<string, unknown> = {}) {
    super('model_load_failed', message, details);
  }
}

export interface LoadFailure {
  /** What was tried: files and settings. */
  stamp: string;
  error: RemudaError;
  /** Tries of this stamp that failed. */
  tries: number;
  /** Unix milliseconds of the next try; null: not before something changes. */
  retryAt: number | null;
}

export function loadFailure(
  error: unknown,
  stamp: string,
  before: LoadFailure | undefined,
  now: number,
): LoadFailure {
  const tries = before?.stamp === stamp ? before.tries + 1 : 1;
  const failure = error instanceof RemudaError ? error : asRemudaError(error);
  const pause = Math.min(PAUSE_MS.most, PAUSE_MS.first * 2 ** Math.min(16, tries - 1));
  return { stamp, error: failure, tries, retryAt: mayPass(failure) ? now + pause : null };
}

/** Whether another try makes sense now. */
export function isBlocked(failure: LoadFailure | undefined, stamp: string, now: number): boolean {
  if (failure === undefined || failure.stamp !== stamp) return false;
  return failure.retryAt === null || now < failure.retryAt;
}

function mayPass(error: RemudaError): boolean {
  return error instanceof PassingLoadError || !LASTING.has(error.code) || error.details[RUNNER_DIED] === true;
}

function asRemudaError(error: unknown): RemudaError {
  return new RemudaError('internal', error instanceof Error ? error.message : String(error));
}
