/** Tables for the tabular model, as Parquet: id and f0 … f29, the same numbers for the same number of rows, written by DuckDB. */
import { DuckDBInstance } from '@duckdb/node-api';

export const FEATURES = 30;

/** Names of the feature columns, in the order of the model's input. */
export const FEATURE_COLUMNS: readonly string[] = Array.from({ length: FEATURES }, (_, k) => `f${k}`);

/**
 * Features are even over [-1, 1), at steps of 2^-23: noise that no encoding makes small, as measured values are.
 * @param path of the file; one that is there is replaced
 */
export async function writeTable(path: string, rows: number): Promise<void> {
  const features = FEATURE_COLUMNS.map(
    (name, k) => `((hash(i * ${FEATURES} + ${k}) >> 40)::FLOAT / 8388608 - 1)::FLOAT AS ${name}`,
  );
  const select = `SELECT i AS id, ${features.join(', ')} FROM range(${rows}) AS t(i)`;
  const instance = await DuckDBInstance.create(':memory:', { memory_limit: '1GB', temp_directory: '' });
  const connection = await instance.connect();
  try {
    await connection.run(`COPY (${select}) TO '${path.replaceAll("'", "''")}' (FORMAT parquet)`);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
