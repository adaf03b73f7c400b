/**
 * What crosses between a worker and its runner child, in both directions, as two tagged unions over Node's IPC
 * channel ('advanced' serialisation). Tensors never cross here: the runner reads payloads from Redis and writes
 * results to Redis itself. A snapshot test guards these shapes.
 */
import type { ItemError, ModelSignature, TerminalStatus } from '@remuda/schemas';
import type { ModelSource } from '../harness/harness.js';
import type { Keyspace } from '../store/keys.js';
import type { GoldenReport } from './golden-check.js';

/** Where a runner finds payloads and writes results. In a message, not in argv: the URL may hold a password. */
export interface StoreAddress {
  url: string;
  keyspace: Keyspace;
}

/** One item of a request, as part of a batch. */
export interface BatchUnit {
  requestId: string;
  /** Fencing token: BullMQ's attemptsStarted when the worker took up the job. */
  token: number;
  /** Index of the item in its request. */
  item: number;
  rows: number;
  /** Tells one acceptance of the request id from another; part of the payload's key. */
  nonce: string;
  /** Where the payload is: in the record itself (small), or under a key of its own. */
  inline: boolean;
  traceId: string;
  /** Unix milliseconds. */
  acceptedAt: number;
}

/** What became of a unit. */
export type UnitOutcome =
  /** Its outcome, good or bad, is stored. */
  | { kind: 'written'; ok: boolean; code?: string; ended: TerminalStatus | null }
  /** Not run, or its answer was thrown away, and rightly so. */
  | { kind: 'dropped'; reason: 'already_terminal' | 'fenced' | 'record_missing' | 'expired' }
  /** The run that held it failed; whose fault it was is not known. `alone`: it was the only unit of that run. */
  | { kind: 'run_failed'; alone: boolean; error: ItemError };

/** What a load is busy with: reading the model, running its warm-up shapes, running its golden cases. */
export type LoadStage = 'loading' | 'warming' | 'verifying';

export type ToRunner =
  /** First of all; answered by `ready`. */
  | { type: 'init'; store: StoreAddress; device: string; bulkShare?: number | undefined }
  /** The version is loaded beside the one of that modelId which is there, and takes its place once it is verified. */
  | { type: 'load'; source: ModelSource; verify: boolean; seq: number }
  /** From the next run on. Nothing happens where the model is not loaded: it will be, with its configuration. */
  | { type: 'configure'; modelId: string; maxBatchSize: number; seq: number }
  /** Answered by `scaled`, or by `load_failed`. */
  | { type: 'scale'; modelId: string; instances: number; seq: number }
  | { type: 'unload'; modelId: string; seq: number }
  /** begun, expectedRunMs, chunk: as in BatchOrder of runner-life.ts. */
  | {
      type: 'run';
      modelId: string;
      batchId: string;
      units: BatchUnit[];
      workerId: string;
      begun?: boolean;
      expectedRunMs?: number;
      chunk?: boolean;
    }
  | { type: 'ping'; seq: number }
  | { type: 'stop' };

export type FromRunner =
  | { type: 'ready'; pid: number }
  | { type: 'load_stage'; seq: number; stage: LoadStage }
  /** memoryBytes: by how much the process grew meanwhile; loadMs: all stages together. */
  | {
      type: 'loaded';
      seq: number;
      signature: ModelSignature;
      provider: string;
      memoryBytes: number;
      golden: GoldenReport;
      loadMs: number;
    }
  | { type: 'load_failed'; seq: number; error: ItemError }
  | { type: 'configured'; seq: number }
  | { type: 'scaled'; seq: number; instances: number; memoryBytes: number }
  | { type: 'unloaded'; seq: number }
  /** A native run of this batch has begun: its time-out counts from here. A batch may hold several, also at once. */
  | { type: 'run_started'; batchId: string; run: number; rows: number }
  | { type: 'run_ended'; batchId: string; run: number; seconds: number }
  /** Outcomes in the order of the units; timings in milliseconds, runMs of all its runs together. */
  | {
      type: 'batch_done';
      batchId: string;
      outcomes: UnitOutcome[];
      fetchMs: number;
      runMs: number;
      writeMs: number;
    }
  /** The batch as a whole could not be worked on (the store refused, the model is not loaded): hand it back. */
  | { type: 'batch_failed'; batchId: string; error: ItemError }
  | { type: 'pong'; seq: number; rssBytes: number }
  | {
      type: 'log';
      level: 'debug' | 'info' | 'warn' | 'error';
      fields: Record<string, unknown>;
      message: string;
    };
