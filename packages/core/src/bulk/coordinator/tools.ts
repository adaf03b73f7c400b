/**
 * What a coordinator is given to work with: readers, mapping and writers, each behind a seam of its own, so that its
 * logic is tested with small ones. The real ones are put together in real-tools.ts.
 */
import type { ModelSignature } from '@remuda/schemas';
import type { ChunkResult, Mapping } from '../chunk.js';
import type { ColumnInfo } from '../columns.js';
import type { OpenedInput, RowReader } from '../input/bulk-input.js';
import type { BulkSpec, StoredBulkJob } from '../job-record.js';
import type { OutputEncoder } from '../output/bulk-output.js';

export interface CoordinatorTools {
  /** @param work the work folder */
  open(spec: BulkSpec, path: string, work: string): Promise<OpenedInput>;
  rows: RowReader;
  /**
   * Where the input lies on the disk; what is not there is fetched into the work folder first, and found there again.
   * @param progress told bytes so far
   */
  locate(spec: BulkSpec, work: string, options: LocateOptions): Promise<string>;
  /** Which columns make which inputs. @throws RemudaError invalid_request */
  settle(
    spec: BulkSpec,
    columns: readonly ColumnInfo[],
    signature: ModelSignature,
    read: OpenedInput['read'],
  ): Mapping;
  /** Text by input, as it is shown. */
  mapTexts(mapping: Mapping): Record<string, string>;
  /** @throws RemudaError invalid_request: outputs that the model does not have, a form that the format does not have */
  output(job: OutputJob): Promise<JobOutput>;
  delivery(job: StoredBulkJob, files: DeliveryFiles): Delivery;
}

export interface LocateOptions {
  signal: AbortSignal;
  progress(bytes: number, total: number | null): void;
}

export interface OutputJob {
  spec: BulkSpec;
  signature: ModelSignature;
  mapping: Mapping;
  columns: readonly ColumnInfo[];
}

/** The output of a job and its file of errors. */
export interface JobOutput {
  encoder: OutputEncoder;
  /** Lines of the file of errors; null: no row has failed. */
  errorLines(result: ChunkResult): Promise<Uint8Array | null>;
}

/** Where the files of a life are put together before they are given. */
export interface DeliveryFiles {
  /** In the work folder; nobody else writes it. */
  output: string;
  errors: string;
  /** The same for the same content: made again after a crash, it is the same file. */
  mark: string;
  /** Every row has its answer. What is not whole must not look it: it goes beside its place (incompleteUri). */
  whole: boolean;
}

/** Where joined files go at the end. */
export interface Delivery {
  /** @throws RemudaError output_exists */
  check(): Promise<void>;
  /**
   * Both or, after a crash, both again. @param errors whether some rows have failed: else there is no file of errors
   * @param again what is in the place of the output is of this job
   */
  give(errors: boolean, again: boolean): Promise<Given>;
}

export interface Given {
  /** Where the output is, where it is no file of the server. */
  outputUri: string | null;
  outputFileId: string | null;
  errorFileId: string | null;
  errorsUri: string | null;
}
