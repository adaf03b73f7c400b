/**
 * Measures a model version over batch sizes × instances × threads with the real harness and instance threads, each pair
 * of instances and threads in a fresh process (model-lab.ts), so that memory is that of the pair alone.
 */
import type { ModelSignature } from '@remuda/schemas';
import type { ModelSource } from '../harness/harness.js';
import type { LabItem } from './lab-messages.js';
import { ModelLab } from './model-lab.js';
import type { Setting, SweepPoint } from './recommendation.js';
import { type SweepOptions, type SweepResult, sweep } from './sweep.js';
import { syntheticItems, type TrialItems, type TrialOptions, trialItems } from './trial-items.js';

export interface ProfileOptions extends Omit<SweepOptions, 'measure' | 'maxBatch'> {
  trial?: TrialOptions;
  /** Largest batch that is tried. Default 64; 1 where the model cannot be batched. */
  maxBatch?: number;
  /** Seconds of one measurement, and of the warm-up before it. Default 0.5 and 0.2. */
  measureS?: number;
  warmUpS?: number;
}

export interface ModelProfile extends SweepResult {
  signature: ModelSignature;
  provider: string;
  inputs: TrialItems['from'];
  /** Items that runs are filled with, turn by turn. */
  items: number;
}

/** @throws RemudaError when it cannot be loaded, or not one setting can be run */
export async function profileModel(source: ModelSource, options: ProfileOptions): Promise<ModelProfile> {
  const bench = new Bench(source, options);
  try {
    const { loaded } = await bench.labOf(1, 1);
    const { signature, provider } = loaded;
    const { items, from } = await bench.prepare(signature);
    const maxBatch = signature.batchable ? (options.maxBatch ?? 64) : 1;
    const result = await sweep({ ...options, maxBatch, measure: (setting) => bench.measure(setting) });
    return { ...result, signature, provider, inputs: from, items: items.length };
  } finally {
    bench.close();
  }
}

class Bench {
  readonly #source: ModelSource;
  readonly #options: ProfileOptions;
  #items: LabItem[] = [];
  #open: { lab: ModelLab; instances: number; threads: number } | undefined;

  constructor(source: ModelSource, options: ProfileOptions) {
    this.#source = source;
    this.#options = options;
  }

  async labOf(instances: number, threads: number): Promise<ModelLab> {
    if (this.#open?.instances === instances && this.#open.threads === threads) return this.#open.lab;
    this.close();
    const config = { ...this.#source.config, instances, intra_op_threads: threads };
    const lab = await ModelLab.open({ ...this.#source, config });
    this.#open = { lab, instances, threads };
    return lab;
  }

  /** Finds what runs are filled with: of the items at hand the largest group that may share a run. */
  async prepare(signature: ModelSignature): Promise<TrialItems> {
    const trial = await trialItems(this.#source, signature, this.#options.trial);
    const lab = await this.labOf(1, 1);
    const group = await lab.largestGroup(trial.items);
    this.#items = group.map((index) => trial.items[index] as LabItem);
    if (this.#items.length === 0) this.#items = syntheticItems(signature, this.#source.config, { count: 1 });
    return { ...trial, items: this.#items };
  }

  async measure(setting: Setting): Promise<SweepPoint> {
    const { measureS = 0.5, warmUpS = 0.2 } = this.#options;
    const lab = await this.labOf(setting.instances, setting.threads);
    const { rowsPerS, p50Ms, p95Ms, rssBytes } = await lab.measure({
      items: this.#items,
      batch: setting.batch,
      warmUpS,
      measureS,
    });
    return { ...setting, rowsPerS, p50Ms, p95Ms, rssBytes };
  }

  close(): void {
    this.#open?.lab.close();
    this.#open = undefined;
  }
}
