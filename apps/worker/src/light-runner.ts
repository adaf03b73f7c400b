/**
 * A runner that loads nothing and runs nothing: for simulated workers, where what is looked at is how a fleet finds
 * together. Loading takes the steps and the memory of a real one, as told.
 */
import type { ModelSource } from '@remuda/core/harness/harness';
import type { BatchOrder } from '@remuda/core/inference/runner-process';
import type { ModelRunner } from './hosted-device.js';

export interface LightRunnerOptions {
  device: string;
  /** Milliseconds of each stage of a load; default 5. */
  stageMs?: number;
  /** What a load adds to the memory; default 0. */
  memoryBytes?(source: ModelSource): number;
  /** Called with each batch; its answer is what ends the run. */
  onRun?(order: BatchOrder): Promise<void>;
  /** What each run is said to have taken; default: nothing is said. */
  runSeconds?: number;
  /** Throws to let a load fail. */
  onLoad?(source: ModelSource): void;
}

export class LightRunner implements ModelRunner {
  readonly loaded = new Map<string, ModelSource>();
  readonly #options: LightRunnerOptions;

  constructor(options: LightRunnerOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {}
  async stop(): Promise<void> {}

  status(): ReturnType<ModelRunner['status']> {
    const { device } = this.#options;
    return { device, state: 'ready', pid: null, restarts: 0, rssBytes: null, batchesInFlight: 0 };
  }

  load: ModelRunner['load'] = async (source, { onStage } = {}) => {
    const { memoryBytes, onLoad } = this.#options;
    for (const stage of ['loading', 'warming', 'verifying'] as const) {
      onStage?.(stage);
      await this.#stage();
    }
    onLoad?.(source);
    this.loaded.set(source.modelId, source);
    return {
      signature: {
        model: source.model,
        version: source.version,
        digest: source.digest,
        harness: source.config.harness,
        inputs: [],
        outputs: [],
        batchable: true,
        max_batch_size: source.config.max_batch_size,
        padding: [],
        parameters_schema: null,
        streams: false,
        affinity: ['cpu'],
      },
      provider: 'none',
      memoryBytes: memoryBytes?.(source) ?? 0,
      golden: { cases: 0, maxAbsError: 0 },
      loadMs: 0,
    };
  };

  async unload(modelId: string): Promise<void> {
    this.loaded.delete(modelId);
  }

  async configure(): Promise<void> {}

  scale: ModelRunner['scale'] = async (_modelId, instances) => ({ instances, memoryBytes: 0 });

  /** As if every request had been taken back meanwhile: nothing is written. */
  run: ModelRunner['run'] = async (order) => {
    const { onRun, runSeconds: seconds } = this.#options;
    await onRun?.(order);
    const rows = order.units.reduce((sum, unit) => sum + unit.rows, 0);
    return {
      outcomes: order.units.map(() => ({ kind: 'dropped', reason: 'record_missing' })),
      fetchMs: 0,
      runMs: 0,
      writeMs: 0,
      runs: seconds === undefined ? [] : [{ rows, seconds }],
    };
  };

  #stage(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, this.#options.stageMs ?? 5));
  }
}
