/**
 * Reads the signature of a model version that no worker has published yet, in a process of its own: the API never
 * loads the native runtime.
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { ItemError, ModelSignature } from '@remuda/schemas';
import { ModelLoadError, RemudaError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { builtFile } from './built-file.js';

/** What the child answers. */
export type Inspection = { ok: true; signature: ModelSignature } | { ok: false; error: ItemError };

/** Change it for models that take longer to read from a slow disk. */
const INSPECT_TIMEOUT_MS = 60_000;

/** @throws RemudaError model_load_failed: what the harness said, or that the process died or took too long */
export async function inspectModel(
  source: ModelSource,
  timeoutMs = INSPECT_TIMEOUT_MS,
): Promise<ModelSignature> {
  const child = fork(builtFile('./inspect-child.js', import.meta.url), {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: [],
  });
  const inspection = await answerOf(child, source, timeoutMs).finally(() => child.kill('SIGKILL'));
  if (inspection.ok) return inspection.signature;
  const { code, message, details } = inspection.error;
  throw new RemudaError(code, message, details);
}

function answerOf(child: ChildProcess, source: ModelSource, timeoutMs: number): Promise<Inspection> {
  return new Promise((resolve, reject) => {
    const fail = (what: string): void => {
      clearTimeout(timer);
      reject(new ModelLoadError(`${source.modelId}: the process that read the model ${what}`));
    };
    const timer = setTimeout(() => fail(`took longer than ${timeoutMs} ms`), timeoutMs);
    child.once('message', (message) => {
      clearTimeout(timer);
      resolve(message as Inspection);
    });
    child.once('error', (error) => fail(`could not be started: ${error.message}`));
    child.once('exit', (code, signal) => fail(`ended with ${signal ?? `code ${code}`} before it answered`));
    child.send(source);
  });
}
