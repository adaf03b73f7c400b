/**
 * A model version as a runner holds it: its instances, its hooks, and what batching must know of it. Owns the
 * instances: close() releases them.
 */
import type { ModelSignature } from '@remuda/schemas';
import type { HarnessHooks, ModelSource } from '../harness/harness.js';
import { resolveHarness } from '../harness/registry.js';
import type { BatchModel } from './batch-assembly.js';
import type { BufferPool } from './buffer-pool.js';
import { InstancePool } from './instance-pool.js';
import { buildSignature } from './model-signature.js';

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
  onFatal(error: Error): void;
}

/** Loads and warms a version. @throws RemudaError; nothing is left behind */
export async function loadModel(given: ModelSource, options: LoadOptions): Promise<LoadedModel> {
  const { definition, source } = await resolveHarness(given);
  const instances = new InstancePool({ source, ...options });
  const { tensors, provider } = await instances.load();
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
    return { source, signature, provider, hooks, batch, instances };
  } catch (error) {
    await instances.unload();
    throw error;
  }
}
