/**
 * What a coordinator needs of an input, whatever its format: what columns there are, and where to cut it into pieces.
 * Opened once a job (again after a crash); memory does not grow with the file.
 */
import type { BulkCompression } from '@remuda/schemas';
import type { ChunkRange, ChunkSource, ReadSettings } from '../chunk.js';
import type { ColumnInfo, RowBlock } from '../columns.js';

/** Where the next piece begins: enough to go on after a crash. Plain JSON. */
export interface InputPosition {
  row: number;
  /** Text: byte, of what lies behind the compression. */
  byte?: number;
  /** Text: line, from 1, for messages. */
  line?: number;
}

export const INPUT_START: InputPosition = { row: 0 };

export interface CutLimits {
  /** Most rows; a piece holds a multiple of `multipleOf` rows, but for the last of the input. */
  rows: number;
  multipleOf: number;
  /** About how many bytes of input it may hold, where one `multipleOf` is not larger. */
  bytes: number;
}

export interface Piece {
  firstRow: number;
  rows: number;
  source: ChunkSource | null;
  range: ChunkRange;
  /** With range payload: the bytes. Else empty; payloadOf() makes them. */
  payload: Uint8Array | null;
  /** Bytes of the input behind it, for progress. */
  bytes: number;
  next: InputPosition;
}

export interface OpenedInput {
  /** As the file says; for CSV and JSONL from the header or the first rows. */
  readonly columns: readonly ColumnInfo[];
  readonly read: ReadSettings;
  readonly compression: BulkCompression;
  /** Where they are known without reading everything. */
  readonly totalRows: number | null;
  readonly totalBytes: number | null;
  /** Of the input as it lies there, for progress, up to a position. */
  bytesAt(position: InputPosition): number;
  /** The piece at a position; null: the input ends there. @throws RemudaError invalid_file, with byte or row */
  cut(position: InputPosition, limits: CutLimits): Promise<Piece | null>;
  /**
   * The rows of a piece for a worker that cannot read the source.
   * @param columns those that are needed (default: all), for formats that are read by column
   */
  payloadOf(
    piece: Pick<Piece, 'range' | 'rows' | 'firstRow'>,
    columns?: readonly string[] | null,
  ): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface OpenOptions {
  /** Absolute path of a local file, or a folder or glob of images. Remote inputs and stdin have been fetched before. */
  path: string;
  read: Partial<ReadSettings> & Pick<ReadSettings, 'format'>;
  compression: BulkCompression;
  /**
   * Where the listing of a folder of images is kept, so that it is the same after a crash: the work folder of the job.
   * Default: a folder of its own that goes with close().
   */
  workFolder?: string;
}

/** Reads the rows of chunks in a runner; keeps files open between them, closes what was not read for a while. */
export interface RowReader {
  /**
   * @param payload with range payload
   * @throws RemudaError source_unreadable where the file is not there, or is not the one that was seen
   */
  read(order: RowsWanted, payload: Uint8Array | null): Promise<RowBlock>;
  close(): Promise<void>;
}

export interface RowsWanted {
  source: ChunkSource | null;
  range: ChunkRange;
  firstRow: number;
  rows: number;
  read: ReadSettings;
  /** Columns that are needed; formats by column read no others. */
  columns: readonly string[] | null;
}
