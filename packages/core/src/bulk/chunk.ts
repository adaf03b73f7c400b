/**
 * A chunk: rows of a bulk job that travel, run and end as one request of lane `chunks`. The order goes in its input
 * frame (extras.chunk), the answer comes back in its outcome frame. The rows themselves are either read by the runner
 * where they lie, or travel in the frame as a tensor.
 */
import type { BulkColumnType, BulkFormat, Datatype, ItemError } from '@remuda/schemas';
import type { Column } from './columns.js';

/** Where the rows of a chunk lie. */
export type ChunkRange =
  /** Whole lines (or CSV records) of an uncompressed text file, by byte. */
  | ({ kind: 'bytes' } & TextSpan)
  /** Rows of a Parquet or Arrow file, from 0. */
  | { kind: 'rows'; from: number; to: number }
  /** In the frame: lines of text for text formats, encoded columns for columnar ones, references for images. */
  | ({ kind: 'payload' } & Partial<TextSpan>);

/** Whole lines (or CSV records) of a text, what lies behind a compression. */
export interface TextSpan {
  from: number;
  to: number;
  /** Number of its first line, from 1, for messages. */
  line?: number;
}

/** The file as the coordinator saw it: a worker that sees another one must not read it. */
export interface ChunkSource {
  path: string;
  bytes: number;
  mtimeMs: number;
}

/** How the rows of a format are read, the same for all chunks of a job. */
export interface ReadSettings {
  format: BulkFormat;
  delimiter?: string;
  /** CSV: names of the columns, from the header. */
  header?: string[];
  /** CSV and JSONL (plain columns): types by column. Default: what all values of a block agree on. */
  types?: Record<string, BulkColumnType>;
  /** JSONL: what a line is. columns: plain columns. requests: one request object. openai: a line of its batch format. */
  lines?: 'columns' | 'requests' | 'openai';
  /** JSONL, list: the file of the errors of another job; what a line is stands under its `input`. */
  rejected?: boolean;
  /** Images and list: absolute folder that relative references start from. */
  base?: string;
  /**
   * Folders that references of a list may lie in (absolute paths); null: anywhere. Default: `base` alone. For images
   * and list.
   */
  roots?: string[] | null;
  /** Folder within those that no reference may lead into (absolute path): uploaded files belong to tenants. */
  closed?: string;
  /**
   * Addresses beside the public ones that URLs of a list may lead to, as in REMUDA_WEBHOOK_ALLOW; null: any. Default:
   * none.
   */
  allowed?: string | null;
  /** S3 of s3:// references: as in model sources. */
  s3?: { endpoint?: string; region?: string };
}

/** Column(s) that make one input of the model. */
export interface InputMapping {
  input: string;
  columns: string[];
  /** Shape of a row, without the batch axis. */
  rowShape: number[];
}

/** How rows become inputs; settled once, at the start of a job. */
export interface Mapping {
  inputs: InputMapping[];
  keep: string[];
  idColumn: string | null;
  parameters?: Record<string, unknown>;
}

/** What of the outputs is wanted. */
export interface OutputChoice {
  outputs?: string[];
  topK?: number;
  argmax?: boolean;
}

export interface ChunkOrder {
  job: string;
  /** Number of the first row of the range in the input, from 0. */
  firstRow: number;
  /** Rows of the range. */
  rows: number;
  source: ChunkSource | null;
  range: ChunkRange;
  /** Only rows [from, to) of the range are wanted: what is left of a chunk that was split. Default: all. */
  slice?: { from: number; to: number };
  read: ReadSettings;
  mapping: Mapping;
  choice: OutputChoice;
}

/** One output of all rows of a chunk, each row's elements behind the other. */
export interface OutputColumn {
  name: string;
  datatype: Datatype;
  /** Of a row ([] a scalar); null: rows differ, see shapes. Rows that failed hold zeros where it is not null, else nothing. */
  shape: number[] | null;
  /** Row by row, where they differ; null for a row that failed. */
  shapes?: (number[] | null)[];
  /** Little-endian elements; BYTES with a length before each. */
  bytes: Uint8Array;
}

export interface RowFailure {
  /** In the chunk, from 0. */
  index: number;
  error: ItemError;
  /** The row as it came. */
  input: unknown;
}

/** The answers of a chunk: exactly one for each row, good or bad. */
export interface ChunkResult {
  firstRow: number;
  rows: number;
  rowNumbers?: number[];
  /** custom_id of each row; null: the job has none. */
  ids: (string | null)[] | null;
  outputs: OutputColumn[];
  kept: Column[];
  failures: RowFailure[];
  /** Of the files of the model that gave them. */
  digest?: string;
  device: string;
  workerId: string;
  /** Native seconds. */
  seconds: number;
}
