/**
 * What can be done with bulk jobs and their files, for the API and for `remuda score --local` alike. A coordinator
 * (coordinator/) does the work of a job; these calls write what is wanted of it into Redis and wake it.
 */
import type { Readable } from 'node:stream';
import type { BulkFile, BulkJob, BulkJobCreate, OpenAiBatchCreate } from '@remuda/schemas';
import type { Sight } from '../access/caller.js';

export interface BulkCaller {
  tenant: string;
  keyId: string | null;
  traceId: string;
  /** The job's id, where the call has an Idempotency-Key: made from it, so that a repeated call is the same job. */
  jobId?: string;
}

export interface BulkPage<Entry> {
  entries: Entry[];
  hasMore: boolean;
}

export interface BulkUseCases {
  /**
   * Checks what can be checked at once (the model is there, the file is, the output is not) and puts the job in.
   * @throws RemudaError model_not_found, version_not_found, file_not_found, output_exists, invalid_request, …
   */
  create(wanted: BulkJobCreate, caller: BulkCaller): Promise<BulkJob>;
  /** The same for a file of lines with custom_id, method, url and body. */
  createOpenAi(wanted: OpenAiBatchCreate, caller: BulkCaller): Promise<BulkJob>;
  /** @throws batch_not_found */
  get(id: string, sight?: Sight): Promise<BulkJob>;
  /** Newest first. @param after id of the last one seen */
  list(page: { limit: number; after?: string }, sight?: Sight): Promise<BulkPage<BulkJob>>;
  /** What is under way is finished; nothing more is started. @throws batch_state, batch_not_found */
  pause(id: string, sight?: Sight): Promise<BulkJob>;
  /** Also what has failed for a reason that can pass: a full disk, a model that had gone, too many errors. */
  resume(id: string, sight?: Sight): Promise<BulkJob>;
  /** What is done is kept and given: the output holds the rows that have an answer. */
  cancel(id: string, sight?: Sight): Promise<BulkJob>;
  /** Runs the rows that have failed once more and puts their answers in their places. Of a job that has ended. */
  retryFailed(id: string, sight?: Sight): Promise<BulkJob>;
  setPriority(id: string, priority: number, sight?: Sight): Promise<BulkJob>;

  readonly files: BulkFiles;
}

/** Files in REMUDA_FILES, a folder that every API and every coordinator sees. */
export interface BulkFiles {
  /** Takes a stream to its end; nothing is there before that. @throws payload_too_large, disk_full */
  create(content: Readable, facts: NewFile): Promise<BulkFile>;
  /**
   * The same in two steps, for a form that names the facts behind the content. One of `keep` and `drop` has to follow.
   * @param mostBytes most that are taken @throws payload_too_large, disk_full
   */
  stage(content: Readable, mostBytes?: number): Promise<StagedFile>;
  /**
   * A whole file within REMUDA_FILES becomes one of these by being renamed. With an id in the facts it can be called
   * again after a crash: then it is the same file.
   */
  adopt(path: string, facts: NewFile): Promise<BulkFile>;
  /** @throws file_not_found */
  get(id: string, sight?: Sight): Promise<BulkFile>;
  /** Newest first, but for order "asc". @throws file_not_found where `after` never was one */
  list(page: BulkFileQuery, sight?: Sight): Promise<BulkPage<BulkFile>>;
  /** @throws file_not_found; batch_state while a job reads it */
  delete(id: string, sight?: Sight): Promise<void>;
  /** Bytes [from, to) of it; default all. @throws file_not_found */
  read(
    id: string,
    range?: { from: number; to: number },
    sight?: Sight,
  ): Promise<{ file: BulkFile; content: Readable }>;
  /** Absolute path, for who reads it here. @throws file_not_found for what is no id of a file */
  pathOf(id: string): string;
}

export interface BulkFileQuery {
  limit: number;
  /** Id of the last one seen; it may have been deleted since. */
  after?: string;
  purpose?: string;
  order?: 'asc' | 'desc';
}

/** Content that is on the disk, whole, and that nobody can ask for yet. */
export interface StagedFile {
  bytes: number;
  keep(facts: NewFile): Promise<BulkFile>;
  drop(): Promise<void>;
}

export interface NewFile {
  /** Default: a new one. */
  id?: string;
  filename: string;
  purpose: BulkFile['purpose'];
  tenant: string;
  /** Seconds after which it may go; null: never. */
  keptS: number | null;
  /** Most bytes that are taken. */
  mostBytes?: number;
}
