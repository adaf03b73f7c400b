/**
 * A model version as a runner holds it: its instances, its hooks, and what batching must know of it. Owns the
 * instances: close() releases them.
 */
import type { ModelSignature } from '@remuda/schemas';
import type { HarnessHooks, ModelSource } from '../harness/harness.js';
import { resolveHarness } from '../harness/registry.js';
import type { BatchModel } from './batch-assembly.js';
import type { BufferPool } from './buffer-pool.js';
import { checkGolden, type GoldenReport } from './golden-check.js';
import { InstancePool } from './instance-pool.js';
import type { InstanceThreads } from './instance-threads.js';
import { buildSignature } from './model-signature.js';
import type { LoadStage } from './runner-protocol.js';

export interface LoadedModel {
  source: ModelSource;
  signature: ModelSignature;
  provider: string;
  hooks: HarnessHooks;
  /** The model's own tensors: what stands behind the preprocess hook. */
  batch: BatchModel;
  instances: InstancePool;
}

export interface LoadOptions {
  buffers: BufferPool;
  threads: InstanceThreads;
  /** Least share of the rows that chunks of bulk jobs get while others wait. Default: BULK_SHARE. */
  bulkShare?: number | undefined;
  onFatal(error: Error): void;
  onStage?(stage: LoadStage): void;
  /** Run the golden cases of the version; default true. */
  verify?: boolean;
}

/**
 * Loads a version, warms it and runs its golden cases.
 * @throws RemudaError, golden_mismatch for a version that does not answer as it should; nothing is left behind
 */
export async function loadModel(
  given: ModelSource,
  options: LoadOptions,
): Promise<{ model: LoadedModel; golden: GoldenReport }> {
  const { buffers, threads, bulkShare, onFatal, onStage = () => {}, verify = true } = options;
  onStage('loading');
  const { definition, source } = await resolveHarness(given);
  const instances = new InstancePool({ source, buffers, threads, bulkShare, onFatal });
  const { tensors, provider } = await instances.load(() => onStage('warming'));
  try {
    const signature = buildSignature(definition, source, tensors);
    const hooks = (await definition.hooks?.(source, tensors)) ?? {};
    const batchable = tensors.inputs.some((input) => input.batch_axis !== null);
    const batch: BatchModel = {
      inputs: tensors.inputs,
      outputs: tensors.outputs,
      padding: source.config.padding,
      maxBatchSize: batchable ? source.config.max_batch_size : 1,
    };
    const model: LoadedModel = { source, signature, provider, hooks, batch, instances };
    if (!verify) return { model, golden: { cases: 0, maxAbsError: 0 } };
    onStage('verifying');
    return { model, golden: await checkGolden(model, buffers) };
  } catch (error) {
    await instances.unload();
    throw error;
  }
}

/** Changes the most rows of one run, from the next run on; a model that takes one row at a time keeps to that. */
export function setMaxBatchSize({ batch, signature }: LoadedModel, rows: number): void {
  if (signature.batchable) batch.maxBatchSize = rows;
}
