/**
 * What a coordinator needs of an output, whatever its format. The answers of each chunk become a part as they come, in
 * any order; at the end parts are joined in the order of their rows. Parts are bytes in one growing file, known by offset
 * and length, so that a crash in the middle of one leaves nothing but a tail to cut off.
 */
import type { Datatype } from '@remuda/schemas';
import type { ChunkResult } from '../chunk.js';

export interface EncodedPart {
  bytes: Uint8Array;
  /** What joining needs to know of it (plain JSON, kept in the journal): types of columns, say. */
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

/** Parts in order. Gone through twice: first for what they hold (meta), then for their bytes. */
export type PartList = Iterable<StoredPart> | AsyncIterable<StoredPart>;

export interface OutputEncoder {
  /**
   * What stands before the parts of an output that is nothing but that and the parts as they are; null: they must be
   * joined. With it, parts that lie in order in one file behind these bytes are the output already.
   */
  readonly head: Uint8Array | null;
  /** @throws RemudaError output_mismatch where the answers do not fit the signature that was told */
  encode(result: ChunkResult): Promise<EncodedPart>;
  /** The whole output of parts in order. @param progress told rows joined so far */
  join(parts: PartList, sink: ByteSink, progress?: (rows: number) => void): Promise<void>;
}

/** An output that is written, as it is known before any row has run: of `chosenSignature()`. */
export interface OutputField {
  name: string;
  datatype: Datatype;
  /** Of a row; null: an axis whose length is known only when it has run. */
  rowShape: (number | null)[];
}

/** A column of the input that is written too. */
export interface KeptField {
  name: string;
  /** As ColumnInfo has it. What parts hold goes before it. */
  type: string | null;
}

/** Columns of an output beside those of the model; a name that is taken by a kept column or an output gets "_" in front. */
export const OUTPUT_COLUMNS = {
  row: 'row',
  id: 'custom_id',
  errorCode: 'error_code',
  errorMessage: 'error_message',
} as const;

/** Lines of JSON hold both of them in one object. */
export const ERROR_COLUMN = 'error';

/** A row of one number is written as that number, not as a list of one. */
export function isScalar(rowShape: readonly (number | null)[]): boolean {
  return rowShape.length === 0 || (rowShape.length === 1 && rowShape[0] === 1);
}
