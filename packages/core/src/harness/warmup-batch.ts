/**
 * The batches of zeros that a model runs before it takes traffic, from `warmup` of its configuration. Where an open
 * axis is given no size, one is guessed; a run on guessed sizes may fail without that being the model's fault.
 */
import { ELEMENT_BYTES, elementCount, type HarnessConfig, type SignatureTensor } from '@remuda/schemas';
import type { HarnessBatch } from './harness.js';

/** Large enough for the strides of most image models, small enough for any. */
const GUESSED_SIZE = 32;

export interface WarmupBatch {
  batch: HarnessBatch;
  guessed: boolean;
}

/** Size of an open axis, where a harness kind knows it. */
export type KnownSize = (input: SignatureTensor, axis: number) => number | undefined;

/** One batch for each entry of `warmup`, all of one row for a model that is not batchable. */
export function warmupBatches(
  inputs: readonly SignatureTensor[],
  config: HarnessConfig,
  knownSize: KnownSize = () => undefined,
): WarmupBatch[] {
  const batchable = inputs.some((input) => input.batch_axis !== null);
  return config.warmup.map((entry) => {
    const rows = batchable ? Math.min(entry.rows, config.max_batch_size) : 1;
    let guessed = false;
    const sizeOf = (input: SignatureTensor, axis: number, dim: string): number => {
      const size = entry.dims[dim] ?? knownSize(input, axis) ?? paddedSize(config, input.name, axis);
      guessed ||= size === undefined;
      return size ?? GUESSED_SIZE;
    };
    const tensors = inputs.map((input) => {
      const shape = input.shape.map((dim, axis) =>
        axis === input.batch_axis ? rows : typeof dim === 'number' ? dim : sizeOf(input, axis, dim),
      );
      // An empty BYTES element is its length alone: four zero bytes.
      const width = ELEMENT_BYTES[input.datatype] || 4;
      const bytes = new Uint8Array(width * elementCount(shape));
      return { name: input.name, datatype: input.datatype, shape, bytes };
    });
    return { batch: { rows, inputs: tensors }, guessed };
  });
}

function paddedSize(config: HarnessConfig, input: string, axis: number): number | undefined {
  return config.padding.find((rule) => rule.input === input && rule.axis === axis)?.multiple_of;
}
