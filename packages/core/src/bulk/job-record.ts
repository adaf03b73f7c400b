/**
 * A bulk job as it lies in Redis. `spec` is what was asked for and never changes; `state` is what its coordinator says of
 * it (or, while none has it, the use cases); `wanted` is what its owner wants of it. Presented by present-job.ts.
 */
import type {
  BulkCompression,
  BulkFormat,
  BulkJobStatus,
  BulkOutputFormat,
  BulkProgress,
  ItemError,
  MaxErrors,
} from '@remuda/schemas';
import type { RequestWebhook } from '../store/stored-record.js';

export interface BulkSpec {
  id: string;
  tenant: string;
  keyId: string | null;
  traceId: string;
  /** Unix milliseconds. */
  createdAt: number;
  /** null: each line of the file names its model. */
  model: string | null;
  version?: string;
  endpoint: string;
  completionWindow: string;
  /** Unix milliseconds after which nothing more is begun; null: never. */
  expiresAt: number | null;
  input: BulkSpecInput;
  output: BulkSpecOutput;
  map?: Record<string, string>;
  idColumn?: string;
  parameters?: Record<string, unknown>;
  maxErrors?: MaxErrors;
  chunkRows?: number;
  webhook?: RequestWebhook;
  metadata: Record<string, string> | null;
  /** Absolute path of its work folder. */
  work: string;
}

export interface BulkSpecInput {
  fileId: string | null;
  /** Absolute path, http(s)://, s3://, or null with fileId. */
  uri: string | null;
  format: BulkFormat;
  compression: BulkCompression;
  delimiter?: string;
  types?: Record<string, string>;
  /** A file of lines with custom_id, method, url and body. */
  openai: boolean;
}

export interface BulkSpecOutput {
  /** null: a file of the server. */
  uri: string | null;
  errorsUri: string | null;
  format: BulkOutputFormat;
  compression: BulkCompression;
  overwrite: boolean;
  unordered: boolean;
  outputs?: string[];
  topK?: number;
  argmax: boolean;
  keep: string[];
  /** Seconds that files of the server are kept; null: until they are deleted. */
  keptS: number | null;
}

/** Unix milliseconds of the first time of each. */
export type BulkTimes = Partial<
  Record<
    'in_progress' | 'finalizing' | 'completed' | 'failed' | 'expired' | 'cancelling' | 'cancelled',
    number
  >
>;

export interface BulkFault {
  code: string;
  message: string;
  param: string | null;
  line: number | null;
}

export interface BulkState {
  status: BulkJobStatus;
  model: string | null;
  version: string | null;
  map: Record<string, string>;
  times: BulkTimes;
  progress: BulkProgress;
  reason: ItemError | null;
  /** Why it has failed, as the batch API of OpenAI lists it. */
  faults: BulkFault[];
  outputFileId: string | null;
  errorFileId: string | null;
  /** Where the output is, where it is no file of the server; null: it has not been given. */
  outputUri: string | null;
  /** Where the file of errors is, with an output that is no file of the server; null: there is none. */
  errorsUri: string | null;
  /** How often its failed rows were asked for anew. */
  round: number;
  /** Errors up to now are not to end it. */
  forgive: boolean;
  /** Only what has failed runs anew, and then it is this again. */
  only: 'cancelled' | 'expired' | null;
}

/** run: go on. retry: run, and what has failed anew. */
export type BulkWish = 'run' | 'pause' | 'cancel' | 'retry';

export interface StoredBulkJob {
  spec: BulkSpec;
  state: BulkState;
  wanted: BulkWish;
  /** Unix milliseconds of that. */
  wantedAt: number;
  priority: number;
  /** Of the newest life of its coordinator; 0: it has had none. */
  epoch: number;
}

export const NO_PROGRESS: BulkProgress = {
  rows_total: null,
  rows_done: 0,
  rows_failed: 0,
  rows_in_flight: 0,
  bytes_total: null,
  bytes_read: 0,
  chunks_done: 0,
  chunks_in_flight: 0,
  rows_repeated: 0,
  rows_per_s: null,
  eta_s: null,
  elapsed_s: 0,
  device_seconds: 0,
  devices: [],
};

export function newBulkState(): BulkState {
  return {
    status: 'validating',
    model: null,
    version: null,
    map: {},
    times: {},
    progress: NO_PROGRESS,
    reason: null,
    faults: [],
    outputFileId: null,
    errorFileId: null,
    outputUri: null,
    errorsUri: null,
    round: 0,
    forgive: false,
    only: null,
  };
}
