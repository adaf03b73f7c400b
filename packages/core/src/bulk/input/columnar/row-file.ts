/**
 * A file whose rows are known by number: Parquet or Arrow IPC. What opening it and reading chunks of it share; the two
 * libraries are loaded only where a file of theirs is read.
 */
import { RemudaError } from '../../../errors.js';
import { nearNames } from '../../../repository/near-names.js';
import type { Column, ColumnInfo } from '../../columns.js';

export interface RowFile {
  /** In the order of the file; names are unique. */
  readonly columns: readonly ColumnInfo[];
  readonly rows: number;
  /** Bytes of the file up to a row, for progress. */
  bytesBefore(row: number): number;
  /** What a row takes in memory there, about. */
  rowBytesAt(row: number): number;
  /**
   * Columns of rows [from, to).
   * @param names null: all of a type that can be read
   * @throws RemudaError invalid_file where it is damaged, or a wanted column is not there or of an unknown type
   */
  read(from: number, to: number, names: readonly string[] | null): Promise<Column[]>;
  close(): Promise<void>;
}

export type ColumnarFormat = 'parquet' | 'arrow';

/** @throws RemudaError invalid_file */
export async function openRowFile(path: string, format: ColumnarFormat): Promise<RowFile> {
  if (format === 'parquet') {
    const { ParquetFile } = await import('./parquet/parquet-file.js');
    return ParquetFile.open(path);
  }
  const { ArrowFile } = await import('./arrow/arrow-file.js');
  return ArrowFile.open(path);
}

/** Places of wanted columns in the file, in the order in which they were asked for. @throws RemudaError invalid_file */
export function placesOf(
  path: string,
  columns: readonly ColumnInfo[],
  names: readonly string[] | null,
): number[] {
  if (names === null) return columns.map((_, place) => place);
  return names.map((name) => {
    const place = columns.findIndex((column) => column.name === name);
    if (place >= 0) return place;
    const near = nearNames(
      name,
      columns.map((column) => column.name),
    );
    const hint = near.length > 0 ? `; did you mean ${near.map((one) => `"${one}"`).join(' or ')}?` : '';
    throw new RemudaError('invalid_file', `${path} has no column "${name}"${hint}`, {
      path,
      column: name,
    });
  });
}

/** @param what the type, in the words of the format */
export function unsupportedType(path: string, column: string, what: string): RemudaError {
  return new RemudaError(
    'invalid_file',
    `${path}: column "${column}" is of type ${what}, which cannot be read; write it as numbers, strings or lists of them, or leave it out`,
    { path, column, type: what },
  );
}
