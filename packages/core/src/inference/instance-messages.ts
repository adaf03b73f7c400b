/** What crosses between the main thread of a runner and one instance thread. Array buffers are transferred, not copied. */
import type { ItemError, RawTensor } from '@remuda/schemas';
import type { ModelSource, ModelTensors } from '../harness/harness.js';

export type ToInstance =
  | { type: 'load'; source: ModelSource }
  | {
      type: 'run';
      rows: number;
      inputs: RawTensor[];
      /** The memory under the inputs; it comes back with the answer. */
      buffers: ArrayBuffer[];
      batchId: string;
      parameters: Record<string, unknown>;
    }
  /** After load: runs the warm-up shapes. */
  | { type: 'warm' }
  | { type: 'unload' };

export type FromInstance =
  | { type: 'loaded'; tensors: ModelTensors; provider: string }
  | { type: 'warmed' }
  /** Answers load or warm; the session is released. */
  | { type: 'load_failed'; error: ItemError }
  | { type: 'ran'; outputs: RawTensor[]; seconds: number; buffers: ArrayBuffer[] }
  | { type: 'run_failed'; error: ItemError; seconds: number; buffers: ArrayBuffer[] }
  | { type: 'unloaded' };
