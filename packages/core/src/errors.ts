/**
 * The error that carries a catalogue code. Everything that can reach a user is one of these (or zod's and the
 * codec's InvalidInputError, at the edge); one place in the API maps it to HTTP, one in the store to an ItemError.
 */
import { ERROR_CATALOGUE, type ErrorCode, type ItemError } from '@remuda/schemas';

export class RemudaError extends Error {
  override readonly name: string = 'RemudaError';
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: Record<string, unknown> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** Whether the same request may succeed later, unchanged. */
  get retryable(): boolean {
    return ERROR_CATALOGUE[this.code].retryable;
  }
}

/** Detail of a load that ended with its runner: that need not be the fault of the model. */
export const RUNNER_DIED = 'runner_died';

/** The model could not be loaded: file missing or corrupt, unsupported opset, provider not there. */
export class ModelLoadError extends RemudaError {
  override readonly name = 'ModelLoadError';
  constructor(message: string, details: Record<string, unknown> = {}, options?: ErrorOptions) {
    super('model_load_failed', message, details, options);
  }
}

/** run() or warmUp() before load(), or after unload(). */
export class ModelNotLoadedError extends RemudaError {
  override readonly name = 'ModelNotLoadedError';
  constructor(modelId: string) {
    super('model_load_failed', `${modelId} is not loaded: call load() first`, { model_id: modelId });
  }
}

/** The native run failed, or gave outputs that do not fit. */
export class InferenceError extends RemudaError {
  override readonly name = 'InferenceError';
  constructor(
    code: Extract<ErrorCode, 'inference_failed' | 'output_mismatch' | 'item_rejected'>,
    message: string,
    details: Record<string, unknown> = {},
    options?: ErrorOptions,
  ) {
    super(code, message, details, options);
  }
}

/** An ItemError as it is stored and shown. */
export function itemError(code: ErrorCode, message: string, details?: Record<string, unknown>): ItemError {
  const empty = details === undefined || Object.keys(details).length === 0;
  return { code, message, retryable: ERROR_CATALOGUE[code].retryable, ...(empty ? {} : { details }) };
}

/** Any thrown value as an ItemError; what is not ours becomes `fallback`. */
export function toItemError(error: unknown, fallback: ErrorCode = 'internal'): ItemError {
  if (error instanceof RemudaError) return itemError(error.code, error.message, error.details);
  return itemError(fallback, error instanceof Error ? error.message : String(error));
}
