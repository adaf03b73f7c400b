/**
 * How a coordinator puts chunks on the queues and gets their answers: each is a request of lane `chunks`, with everything
 * that holds of a request (routes, fencing, retries, crashed workers), but shown in no list and told to no webhook.
 */
import type { ItemError, ModelSignature } from '@remuda/schemas';
import type { Target } from '../models/model-resolver.js';
import type { ChunkOrder, ChunkResult } from './chunk.js';

export interface NewChunk {
  /** chunkIdOf(): the same content under the same id is one chunk, whoever sends it again. */
  id: string;
  target: Target;
  tenant: string;
  keyId: string | null;
  traceId: string;
  priority: number;
  order: ChunkOrder;
  /** With range payload. */
  payload: Uint8Array | null;
}

/** `again`: how often it was begun anew, since the worker or runner that had it was lost. */
export type ChunkEnd =
  | { kind: 'done'; result: ChunkResult; bytes: number; again: number }
  /** runner_crashed, run_timeout: split it. source_unreadable: send it by payload. retryable: the same again, later. */
  | { kind: 'failed'; error: ItemError; again: number }
  /** Its record is gone: Redis has lost it. */
  | { kind: 'gone' };

/** What the size of chunks is made from. */
export interface ModelPace {
  /** Of one instance; null: not measured yet. */
  secondsPerRow: number | null;
  /** Most rows of a run. */
  batchRows: number;
  /** Instances of it that are alive, of all workers; 0: none has it loaded. */
  instances: number;
  /** Devices that are alive and have it loaded. */
  devices: number;
}

export interface ChunkDoor {
  /** @throws model_not_found, version_not_found, model_not_loaded, … */
  resolve(model: string, version?: string): Promise<Target>;
  signatureOf(target: Target): ModelSignature;
  pace(target: Target): ModelPace;
  /** @throws over_capacity and what else can pass: try again after `retryAfterMs` */
  submit(chunk: NewChunk): Promise<'queued' | 'known'>;
  /** Resolves when it has ended, or after `ms` with null. */
  wait(id: string, ms: number, signal?: AbortSignal): Promise<ChunkEnd | null>;
  /** Ends it where it has not: its rows are not wanted any more. */
  cancel(id: string): Promise<void>;
  /** Its answer is in the journal: record and outcome may go. */
  forget(id: string): Promise<void>;
}

const MARK = 'chunk.';

/** A dot is in no id that a user can send. @param part tells tries and slices of the same rows apart */
export function chunkIdOf(job: string, firstRow: number, rows: number, part: string): string {
  return `${MARK}${job}.${firstRow}.${rows}.${part}`;
}

export function isChunkId(requestId: string): boolean {
  return requestId.startsWith(MARK);
}
