/**
 * Reads the signature of a model version that no worker has published yet, in a process of its own: the API never
 * loads the native runtime.
 */
import type { ItemError, ModelSignature } from '@remuda/schemas';
import { ModelLoadError, RemudaError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { oneAnswer } from './one-answer.js';

/** What the child answers. */
export type Inspection = { ok: true; signature: ModelSignature } | { ok: false; error: ItemError };

/** Change it for models that take longer to read from a slow disk. */
const INSPECT_TIMEOUT_MS = 60_000;

/** @throws RemudaError model_load_failed: what the harness said, or that the process died or took too long */
export async function inspectModel(
  source: ModelSource,
  timeoutMs = INSPECT_TIMEOUT_MS,
): Promise<ModelSignature> {
  const from = import.meta.url;
  const inspection = await oneAnswer<Inspection>(source, {
    entry: './inspect-child.js',
    from,
    timeoutMs,
  }).catch((error: Error) => {
    throw new ModelLoadError(`${source.modelId}: the process that read the model ${error.message}`);
  });
  if (inspection.ok) return inspection.signature;
  const { code, message, details } = inspection.error;
  throw new RemudaError(code, message, details);
}
