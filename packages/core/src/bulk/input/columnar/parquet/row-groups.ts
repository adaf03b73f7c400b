/** Where the row groups of a file lie: how far a row is in it, and which group a damaged page belongs to. */
import { type Connection, pathLiteral } from './duckdb.js';

export class RowGroups {
  /** First row of each group, and the number of all rows. */
  readonly #firstRow: number[];
  /** Bytes of the groups before, compressed. */
  readonly #bytesBefore: number[];
  /** In memory, of each group. */
  readonly #bytes: number[];

  private constructor(firstRow: number[], bytesBefore: number[], bytes: number[]) {
    this.#firstRow = firstRow;
    this.#bytesBefore = bytesBefore;
    this.#bytes = bytes;
  }

  static async of(connection: Connection, path: string): Promise<RowGroups> {
    const read = await connection.runAndReadAll(
      `SELECT any_value(row_group_num_rows)::DOUBLE, sum(total_compressed_size)::DOUBLE, sum(total_uncompressed_size)::DOUBLE
       FROM parquet_metadata(${pathLiteral(path)}) GROUP BY row_group_id ORDER BY row_group_id`,
    );
    const firstRow = [0];
    const bytesBefore = [0];
    const bytes: number[] = [];
    for (const [rows, compressed, plain] of read.getRows()) {
      firstRow.push((firstRow.at(-1) as number) + Number(rows));
      bytesBefore.push((bytesBefore.at(-1) as number) + Number(compressed));
      bytes.push(Number(plain));
    }
    return new RowGroups(firstRow, bytesBefore, bytes);
  }

  get rows(): number {
    return this.#firstRow.at(-1) as number;
  }

  bytesBefore(row: number): number {
    const group = this.#groupOf(row);
    const before = this.#bytesBefore[group] as number;
    const share = (row - (this.#firstRow[group] as number)) / this.#rowsIn(group);
    return Math.round(before + share * ((this.#bytesBefore[group + 1] as number) - before));
  }

  rowBytesAt(row: number): number {
    const group = this.#groupOf(row);
    return (this.#bytes[group] as number) / this.#rowsIn(group);
  }

  /** "3", or "3 to 5". */
  holding(from: number, to: number): string {
    const first = this.#groupOf(from);
    const last = this.#groupOf(Math.max(from, to - 1));
    return first === last ? String(first) : `${first} to ${last}`;
  }

  #groupOf(row: number): number {
    let low = 0;
    let high = Math.max(this.#bytes.length - 1, 0);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#firstRow[middle] as number) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #rowsIn(group: number): number {
    return Math.max((this.#firstRow[group + 1] ?? 0) - (this.#firstRow[group] ?? 0), 1);
  }
}
