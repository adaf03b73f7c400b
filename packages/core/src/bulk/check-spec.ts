/** What can be said of a job at once, so that nobody waits for a job to fail that could not have run. */
import { stat } from 'node:fs/promises';
import { RemudaError } from '../errors.js';
import type { Target } from '../models/model-resolver.js';
import { Patience } from '../repository/sources/patience.js';
import { isGlob } from './input/detect.js';
import { isRemote } from './input/remote-uri.js';
import type { BulkSpec } from './job-record.js';
import { chosenSignature } from './output/output-choice.js';
import { checkEncoding } from './output/output-encoder.js';
import { checkTarget, parseTarget } from './output/output-target.js';

export interface CheckDeps {
  resolve(ask: { model: string; version: string | undefined; stickyKey: undefined }): Promise<Target>;
}

/** @throws RemudaError model_not_found, version_not_found, file_not_found, output_exists, invalid_request */
export async function checkSpec(spec: BulkSpec, deps: CheckDeps): Promise<void> {
  await checkModel(spec, deps);
  await checkInput(spec);
  await checkOutput(spec);
}

async function checkModel({ model, version, output }: BulkSpec, { resolve }: CheckDeps): Promise<void> {
  if (model === null) return;
  try {
    const { signature } = await resolve({ model, version, stickyKey: undefined });
    const { outputs, topK, argmax } = output;
    chosenSignature(signature.outputs, { ...(outputs && { outputs }), ...(topK && { topK }), argmax });
  } catch (error) {
    // It can come: the job waits for it.
    if (!(error instanceof RemudaError && error.retryable)) throw error;
  }
}

async function checkInput({ input: { uri } }: BulkSpec): Promise<void> {
  if (uri === null || isRemote(uri)) return;
  if (await stat(uri).catch(() => null)) return;
  if (isGlob(uri)) return;
  throw new RemudaError('file_not_found', `there is no file or folder ${uri}`, { path: uri });
}

async function checkOutput({ output }: BulkSpec): Promise<void> {
  const { uri, errorsUri, format, compression, overwrite } = output;
  checkEncoding(format, compression);
  if (uri === null) return;
  const options = { patience: new Patience(), signal: new AbortController().signal };
  const target = parseTarget(uri);
  if (errorsUri !== null) parseTarget(errorsUri);
  // What lies in a bucket is looked at by the coordinator, which may have the rights to it.
  if (target.kind === 'path') await checkTarget(target, { ...options, overwrite });
}
