/**
 * Rows in memory, column by column: what every reader gives and every writer takes. Numbers stand in typed arrays, so
 * that a chunk of a million of them is a few objects.
 */
import type { ItemError } from '@remuda/schemas';

export type NumericType =
  | 'bool'
  | 'int8'
  | 'int16'
  | 'int32'
  | 'int64'
  | 'uint8'
  | 'uint16'
  | 'uint32'
  | 'uint64'
  | 'float32'
  | 'float64';

/** bool: 0 and 1 in a Uint8Array. */
export type NumericValues =
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

interface ColumnBase {
  name: string;
  /** 1 where the row has no value; absent: every row has one. */
  nulls?: Uint8Array;
}

export type Column =
  | (ColumnBase & { type: NumericType; values: NumericValues })
  | (ColumnBase & { type: 'string'; values: (string | null)[] })
  | (ColumnBase & { type: 'bytes'; values: (Uint8Array | null)[] })
  /** Any JSON value: objects, ragged lists, what a JSONL line holds. */
  | (ColumnBase & { type: 'json'; values: unknown[] })
  /** Row i is child rows [offsets[i], offsets[i + 1]). */
  | (ColumnBase & { type: 'list'; offsets: Uint32Array; child: Column });

/** What is known of a column before its rows are read. */
export interface ColumnInfo {
  name: string;
  /** As a person reads it: "float32", "list<float32>", "string". null: only its values tell (CSV, JSONL). */
  type: string | null;
}

/** Consecutive rows of an input. */
export interface RowBlock {
  rows: number;
  columns: Column[];
  /** Rows that could not be read at all, by index in the block: their values are null or zero. */
  failures: Map<number, ItemError>;
  /** Where a row has a number of its own: the file of the errors of another job. Absent: they count up. */
  rowNumbers?: number[];
  /** The row as it came, for the file of errors; default: the columns as JSON. */
  rawOf?(index: number): unknown;
}
