/**
 * The coordinator's side of a Parquet or Arrow file: its columns, and pieces of it as ranges of rows. Nothing but the
 * footer is read, so pieces are cut at no cost and a job that comes back after a crash goes on at any row.
 */
import { RemudaError } from '../../../errors.js';
import type { ChunkSource, ReadSettings } from '../../chunk.js';
import type { CutLimits, InputPosition, OpenedInput, OpenOptions, Piece } from '../bulk-input.js';
import { encodePayload } from './columnar-payload.js';
import { checkSource, sourceOf } from './columnar-source.js';
import { type ColumnarFormat, openRowFile, type RowFile } from './row-file.js';

/**
 * @throws RemudaError file_not_found, invalid_file with the byte where it is damaged, unsupported_feature where it is
 * compressed as a whole
 */
export async function openColumnar({ path, read, compression }: OpenOptions): Promise<OpenedInput> {
  const { format } = read;
  if (format !== 'parquet' && format !== 'arrow')
    throw new Error(`"${format}" is not a format that is read by column`);
  if (compression !== 'none') {
    throw new RemudaError(
      'unsupported_feature',
      `${path}: a ${format} file that is compressed as a whole (${compression}) cannot be read by rows; decompress it first (its columns may be compressed inside)`,
      { path, compression },
    );
  }
  const source = await sourceOf(path);
  const file = await openRowFile(path, format);
  return new ColumnarInput(file, source, { ...read, format });
}

class ColumnarInput implements OpenedInput {
  readonly compression = 'none';
  readonly #file: RowFile;
  readonly #source: ChunkSource;

  constructor(
    file: RowFile,
    source: ChunkSource,
    readonly read: ReadSettings & { format: ColumnarFormat },
  ) {
    this.#file = file;
    this.#source = source;
  }

  get columns() {
    return this.#file.columns;
  }

  get totalRows(): number {
    return this.#file.rows;
  }

  get totalBytes(): number {
    return this.#source.bytes;
  }

  bytesAt({ row }: InputPosition): number {
    return row >= this.#file.rows ? this.#source.bytes : this.#file.bytesBefore(row);
  }

  async cut({ row }: InputPosition, limits: CutLimits): Promise<Piece | null> {
    const left = this.#file.rows - row;
    if (left <= 0) return null;
    const rows = Math.min(left, rowsWithin(limits, this.#file.rowBytesAt(row)));
    const next = { row: row + rows };
    return {
      firstRow: row,
      rows,
      source: this.#source,
      range: { kind: 'rows', from: row, to: row + rows },
      payload: null,
      bytes: this.bytesAt(next) - this.bytesAt({ row }),
      next,
    };
  }

  async payloadOf(
    { range }: Pick<Piece, 'range'>,
    columns: readonly string[] | null = null,
  ): Promise<Uint8Array> {
    if (range.kind !== 'rows') throw new Error(`a piece of a columnar file is no range of ${range.kind}`);
    await checkSource(this.#source);
    return encodePayload(await this.#file.read(range.from, range.to, columns));
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

/** The largest multiple within both limits, at least one. */
function rowsWithin({ rows, multipleOf, bytes }: CutLimits, rowBytes: number): number {
  const most = Math.min(rows, Math.floor(bytes / Math.max(rowBytes, 1)));
  return Math.max(1, Math.floor(most / multipleOf)) * multipleOf;
}
