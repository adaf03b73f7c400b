/** What is looked at in an output: its bytes, in the order of rows, and that each row is there once. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';

export interface OutputFacts {
  /** SHA-256 of the file; of its lines in the order of their rows, where it is not ordered. */
  digest: string;
  rows: number;
  /** Rows that are not there, and rows that are there again. */
  missing: number;
  doubled: number;
}

/** @param ordered false: JSON lines in any order, which are put in order first */
export async function outputFacts(path: string, rows: number, ordered: boolean): Promise<OutputFacts> {
  const bytes = readFileSync(path);
  const found = path.endsWith('.parquet') ? await parquetRows(path) : lineRows(bytes.toString());
  const times = new Map<number, number>();
  for (const row of found) times.set(row, (times.get(row) ?? 0) + 1);
  return {
    digest: digestOf(ordered ? bytes : inOrder(bytes.toString())),
    rows: found.length,
    missing: Array.from({ length: rows }, (_, row) => row).filter((row) => !times.has(row)).length,
    doubled: found.length - times.size,
  };
}

function digestOf(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex');
}

function lineRows(text: string): number[] {
  return linesOf(text).map(rowOf);
}

function inOrder(text: string): string {
  return linesOf(text)
    .sort((a, b) => rowOf(a) - rowOf(b))
    .join('\n');
}

function linesOf(text: string): string[] {
  return text.split('\n').slice(0, -1);
}

function rowOf(line: string): number {
  return (JSON.parse(line) as { row: number }).row;
}

async function parquetRows(path: string): Promise<number[]> {
  const instance = await DuckDBInstance.create(':memory:', { temp_directory: '' });
  const connection = await instance.connect();
  try {
    const sql = `SELECT row::INTEGER FROM read_parquet('${path.replaceAll("'", "''")}')`;
    return (await connection.runAndReadAll(sql)).getRows().map(([row]) => row as number);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
