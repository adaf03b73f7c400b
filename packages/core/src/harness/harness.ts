/**
 * The harness: one interface in which any model is loaded, warmed, run, observed and unloaded, so that nothing
 * outside this folder knows what runs behind it. A harness lives in an instance thread of a runner process; it may
 * block its thread, and a crash of it takes down the runner, never the worker.
 *
 * A new model type is a new file: harness/kinds/<name>.ts exporting `definition`, or "./file.mjs" beside a model.yaml
 * whose `definition` may be a function of a HarnessToolbox. No existing file changes (see registry.ts).
 */
import type { HarnessConfig, ItemError, RawTensor, SignatureTensor } from '@remuda/schemas';
import type * as z from 'zod';

/** Where a model version lies and how it is configured: what a harness needs to load it. */
export interface ModelSource {
  /** name@version */
  modelId: string;
  model: string;
  version: string;
  digest: string;
  /** Absolute path of the version folder. */
  folder: string;
  /** The registry replaces `model_kwargs` by what the kind's schema made of them: defaults filled in. */
  config: HarnessConfig;
  /** cpu, cuda:0, … */
  device: string;
  /**
   * Runs what is meant for one provider by another, { cuda: 'cpu' }: for tests on machines that lack the hardware.
   * The provider that really ran is what is reported.
   */
  providerSwitch?: Record<string, string>;
}

/** Names, datatypes, shapes and batch axes, as the loaded model itself says. */
export interface ModelTensors {
  inputs: SignatureTensor[];
  outputs: SignatureTensor[];
}

/** One batch, assembled: every input that has a batch axis holds `rows` rows along it. Buffers belong to the caller. */
export interface HarnessBatch {
  rows: number;
  inputs: RawTensor[];
}

export interface RunContext {
  batchId: string;
  /** Request parameters; equal for all rows of a batch, since they are part of the compatibility key. */
  parameters: Record<string, unknown>;
}

export interface HarnessStatus {
  state: 'unloaded' | 'loaded';
  provider: string | null;
  runs: number;
}

export interface InferenceHarness {
  readonly modelId: string;
  readonly isLoaded: boolean;
  /** @throws ModelLoadError saying which file or option is at fault */
  load(source: ModelSource): Promise<ModelTensors>;
  /** Runs the configured warm-up shapes. @throws ModelNotLoadedError, InferenceError */
  warmUp(): Promise<void>;
  /** Outputs in the model's order, each with the rows of the batch. @throws ModelNotLoadedError, InferenceError */
  run(batch: HarnessBatch, context: RunContext): Promise<RawTensor[]>;
  /** Releases the native session. Safe to call twice. */
  unload(): Promise<void>;
  status(): HarnessStatus;
}

/** Outputs of one item and what else the model has to say about it. */
export interface ItemAnswer {
  outputs: RawTensor[];
  extra?: Record<string, unknown>;
}

/** What preprocess gives: the model's own inputs, or the reason why this item alone cannot be run. */
export type Preprocessed = { inputs: RawTensor[]; note?: unknown } | { error: ItemError };

/**
 * Work around the native run, done in the runner's main thread while another batch runs. Each call is about one
 * item, so that one bad item fails alone.
 */
export interface HarnessHooks {
  preprocess?(inputs: RawTensor[], parameters: Record<string, unknown>): Promise<Preprocessed>;
  /** `note` is what preprocess left for this item. */
  postprocess?(outputs: RawTensor[], parameters: Record<string, unknown>, note: unknown): Promise<ItemAnswer>;
}

/** Everything the registry knows about a kind of harness. */
export interface HarnessDefinition {
  /** Checked at load; unknown keys are errors. */
  kwargs: z.ZodType;
  /** Schema of the request's `parameters`; null: the kind takes none. */
  parameters: z.ZodType | null;
  /** Makes the object that lives in an instance thread. */
  create(): InferenceHarness;
  /** Makes the hooks that live in the runner's main thread, once per loaded version. `tensors`: the model's own. */
  hooks?(source: ModelSource, tensors: ModelTensors): Promise<HarnessHooks>;
  /** What users see, where hooks make it differ from the model's own tensors. */
  publicTensors?(tensors: ModelTensors, source: ModelSource): ModelTensors;
}

/** What a harness file beside a model.yaml is given: it lies outside the packages and can import none of them. */
export interface HarnessToolbox {
  /** The definition of a built-in kind, to build on: `{ ...(await kind('onnx')), create: () => … }`. */
  kind(name: string): Promise<HarnessDefinition>;
  z: typeof z;
}

/** What a harness module exports as `definition`. */
export type HarnessExport =
  | HarnessDefinition
  | ((toolbox: HarnessToolbox) => HarnessDefinition | Promise<HarnessDefinition>);
