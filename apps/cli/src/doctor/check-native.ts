/**
 * Whether ONNX Runtime's native library loads here. Asked of the same throw-away child that reads signatures for the
 * API, with the smallest model there is, so that a library that crashes takes down nothing.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ModelSource } from '@remuda/core/harness/harness';
import { inspectModel } from '@remuda/core/inference/inspect-model';
import { HarnessConfig } from '@remuda/schemas';
import { reasonOf } from '../cli-error.js';
import { type Finding, fail, ok } from './finding.js';

/** y = Identity(x), FP32 [N, D], as test/models/make-models.mjs writes it. */
const IDENTITY =
  'CAgSEnJlbXVkYS10ZXN0LW1vZGVsczpPChwKAXgSAXkaCklkZW50aXR5X3kiCElkZW50aXR5EgFnWhUKAXgSEAoOCAESCgoDEgFOCgMSAURiFQoB' +
  'eRIQCg4IARIKCgMSAU4KAxIBREIECgAQEQ==';
const TIMEOUT_MS = 20_000;

export async function checkNative(): Promise<Finding> {
  const folder = await mkdtemp(join(tmpdir(), 'remuda-doctor-'));
  try {
    await writeFile(join(folder, 'model.onnx'), Buffer.from(IDENTITY, 'base64'));
    const begun = performance.now();
    await inspectModel(sourceIn(folder), TIMEOUT_MS);
    return ok(
      'native library',
      `ONNX Runtime loads and reads a model (${Math.round(performance.now() - begun)} ms)`,
    );
  } catch (error) {
    return fail(
      'native library',
      reasonOf(error).replace('identity@1: ', ''),
      'Install again (rm -r node_modules, npm start). It needs glibc 2.28 or later, and no musl (Alpine).',
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function sourceIn(folder: string): ModelSource {
  const config = HarnessConfig.parse({ harness: 'onnx' });
  return {
    modelId: 'identity@1',
    model: 'identity',
    version: '1',
    digest: '',
    folder,
    config,
    device: 'cpu',
  };
}
