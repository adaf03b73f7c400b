/**
 * What a coordinator needs of an output, whatever its format. The answers of each chunk become a part as they come, in
 * any order; at the end parts are joined in the order of their rows. Parts are bytes in one growing file, known by offset
 * and length, so that a crash in the middle of one leaves nothing but a tail to cut off.
 */
import type { ChunkResult } from '../chunk.js';

export interface EncodedPart {
  bytes: Uint8Array;
  /** What joining needs to know of it (plain JSON, kept in the journal): offsets of columns, say. */
  meta?: unknown;
}

export interface StoredPart {
  firstRow: number;
  rows: number;
  length: number;
  meta?: unknown;
  /** Its bytes. */
  read(): Promise<Uint8Array>;
}

/** Where joined bytes go, in order. @throws RemudaError disk_full */
export interface ByteSink {
  write(bytes: Uint8Array): Promise<void>;
}

export interface OutputEncoder {
  /** Where parts of which all lie in order, and nothing else between them, may become the output by adding head and tail: they are given as they are. */
  encode(result: ChunkResult): Promise<EncodedPart>;
  /** The whole output of parts in order. @param progress told rows joined so far */
  join(
    parts: Iterable<StoredPart> | AsyncIterable<StoredPart>,
    sink: ByteSink,
    progress?: (rows: number) => void,
  ): Promise<void>;
}

/** Columns of an output beside those of the model; a name that is taken by a kept column or an output gets "_" in front. */
export const OUTPUT_COLUMNS = {
  row: 'row',
  id: 'custom_id',
  errorCode: 'error_code',
  errorMessage: 'error_message',
} as const;
