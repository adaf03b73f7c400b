/**
 * Parquet in, Parquet out: DuckDB streams the columns, which are interleaved to rows, run in batches, and written as row
 * groups. The next batch is read while one runs: DuckDB's own thread fills its buffer while the run holds this one.
 */
import { type DuckDBConnection, DuckDBInstance, type DuckDBResult } from '@duckdb/node-api';
import { FEATURE_COLUMNS, FEATURES } from '../data/table-file.js';
import type { TableLoopJob } from './loop-job.js';
import { TableOutput } from './table-output.js';
import type { TimedModel } from './timed-model.js';

interface Batch {
  ids: BigInt64Array;
  /** Row by row. */
  features: Float32Array;
}

/** What DuckDB gives at a time: columns. */
interface Chunk {
  rows: number;
  ids: BigInt64Array;
  features: Float32Array[];
}

export async function scoreTable({ input, output, batch }: TableLoopJob, model: TimedModel): Promise<number> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '2', temp_directory: '' });
  const connection = await instance.connect();
  const reader = new TableReader(await streamOf(connection, input), batch);
  const writer = new TableOutput(output);
  let ahead = reader.read();
  for (;;) {
    const rows = await ahead;
    if (!rows) break;
    ahead = reader.read();
    const answers = await model.run({ values: rows.features, shape: [rows.ids.length, FEATURES] });
    writer.append(rows.ids, answers.values);
  }
  const written = writer.finish();
  connection.closeSync();
  instance.closeSync();
  return written;
}

function streamOf(connection: DuckDBConnection, path: string): Promise<DuckDBResult> {
  const columns = ['id', ...FEATURE_COLUMNS].join(', ');
  return connection.stream(`SELECT ${columns} FROM read_parquet('${path.replaceAll("'", "''")}')`);
}

/** Batches of `size` rows out of DuckDB's chunks, which have other sizes. */
class TableReader {
  readonly #result: DuckDBResult;
  readonly #size: number;
  #chunk: Chunk | undefined;
  /** Rows of the chunk that are in a batch already. */
  #taken = 0;

  constructor(result: DuckDBResult, size: number) {
    this.#result = result;
    this.#size = size;
  }

  /** The next rows; undefined at the end. */
  async read(): Promise<Batch | undefined> {
    const ids = new BigInt64Array(this.#size);
    const features = new Float32Array(this.#size * FEATURES);
    let filled = 0;
    while (filled < this.#size && (await this.#haveRows())) filled += this.#take(ids, features, filled);
    if (filled === 0) return undefined;
    return { ids: ids.subarray(0, filled), features: features.subarray(0, filled * FEATURES) };
  }

  async #haveRows(): Promise<boolean> {
    if (this.#chunk && this.#taken < this.#chunk.rows) return true;
    const chunk = await this.#result.fetchChunk();
    if (!chunk || chunk.rowCount === 0) return false;
    const itemsOf = (column: number): unknown =>
      (chunk.getColumnVector(column) as unknown as { items: unknown }).items;
    this.#chunk = {
      rows: chunk.rowCount,
      ids: itemsOf(0) as BigInt64Array,
      features: FEATURE_COLUMNS.map((_, k) => itemsOf(k + 1) as Float32Array),
    };
    this.#taken = 0;
    return true;
  }

  #take(ids: BigInt64Array, features: Float32Array, filled: number): number {
    const chunk = this.#chunk as Chunk;
    const from = this.#taken;
    const rows = Math.min(this.#size - filled, chunk.rows - from);
    ids.set(chunk.ids.subarray(from, from + rows), filled);
    chunk.features.forEach((column, k) => {
      let to = filled * FEATURES + k;
      for (let row = from; row < from + rows; row++, to += FEATURES) features[to] = column[row] as number;
    });
    this.#taken += rows;
    return rows;
  }
}
