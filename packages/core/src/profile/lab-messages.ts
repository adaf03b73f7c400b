/** What crosses between a model lab and its child process. Tensors cross too: this is no path of requests. */
import type { ItemError, ModelSignature, RawTensor } from '@remuda/schemas';
import type { ModelSource } from '../harness/harness.js';

/** Inputs of one item, as users send them. */
export interface LabItem {
  inputs: RawTensor[];
  parameters: Record<string, unknown>;
}

export interface LabLoad {
  source: ModelSource;
  /** Run its golden cases; the load fails where they do. */
  verify: boolean;
}

export interface LabLoaded {
  signature: ModelSignature;
  provider: string;
  goldenCases: number;
  goldenMaxAbsError: number;
}

/** How an item ended. */
export type LabAnswer =
  | { ok: true; outputs: RawTensor[]; extra: Record<string, unknown> | undefined; batchRows: number }
  | { ok: false; error: ItemError };

export interface LabMeasure {
  items: LabItem[];
  /** Rows of a run. */
  batch: number;
  /** Seconds of warm-up, not counted, and of measuring; at least two runs of each. */
  warmUpS: number;
  measureS: number;
}

export interface LabMeasured {
  rowsPerS: number;
  /** Of a native run, in milliseconds. */
  p50Ms: number;
  p95Ms: number;
  runs: number;
  /** Resident memory of the process afterwards, model and buffers included. */
  rssBytes: number;
}

export type ToLab = { seq: number } & (
  | ({ type: 'load' } & LabLoad)
  /** together: all items in one batch as far as they may share one; else each by itself. */
  | { type: 'answer'; items: LabItem[]; together: boolean }
  | { type: 'group'; items: LabItem[] }
  | ({ type: 'measure' } & LabMeasure)
);

export type FromLab = { seq: number } & ({ ok: true; result: unknown } | { ok: false; error: ItemError });
