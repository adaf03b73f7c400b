/** Whether both sides have written the same answers: a fast side that answers something else has won nothing. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { DuckDBInstance } from '@duckdb/node-api';

type Answers = Record<string, unknown>;

/** JSON lines in the same order. @throws Error with the first row that differs */
export async function sameLines(
  loop: string,
  own: string,
  { exact, near }: { exact: readonly string[]; near: readonly string[] },
  tolerance: number,
): Promise<void> {
  const mine = linesOf(own);
  let row = 0;
  for await (const expected of linesOf(loop)) {
    const { value: found } = await mine.next();
    const differs = exact.some((name) => answerOf(found, name) !== expected[name]);
    const isFar = near.some((name) => !isNear(answerOf(found, name), expected[name], tolerance));
    if (found?.row !== row || differs || isFar)
      throw new Error(`row ${row}: ${JSON.stringify(found)} where the loop has ${JSON.stringify(expected)}`);
    row++;
  }
  if (!(await mine.next()).done) throw new Error(`there are more than ${row} rows, which the loop has`);
}

async function* linesOf(path: string): AsyncGenerator<Answers, undefined> {
  for await (const line of createInterface({ input: createReadStream(path) })) yield JSON.parse(line);
}

/** A scalar may stand alone or as a list of one. */
function answerOf(answers: Answers | undefined, name: string): unknown {
  const outputs = (answers?.outputs ?? answers) as Answers | undefined;
  const value = outputs?.[name];
  return Array.isArray(value) ? value[0] : value;
}

function isNear(value: unknown, expected: unknown, tolerance: number): boolean {
  return typeof value === 'number' && Math.abs(value - (expected as number)) <= tolerance;
}

/** Parquet of the tabular model, row by row. @throws Error with how many differ */
export async function sameTables(loop: string, own: string): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:', { temp_directory: '' });
  const connection = await instance.connect();
  try {
    const read = (path: string): string => `read_parquet('${path.replaceAll("'", "''")}')`;
    const far = 'abs(l.probabilities[1] - o.probabilities[1]) < 1e-5';
    const sql = `SELECT (SELECT count(*) FROM ${read(loop)}), (SELECT count(*) FROM ${read(own)}), count(*)
      FROM ${read(loop)} l JOIN ${read(own)} o ON l.row = o.row AND l.id = o.id AND ${far}`;
    const [[expected, found, same] = []] = (await connection.runAndReadAll(sql)).getRows();
    if (expected !== found || expected !== same)
      throw new Error(`${found} rows where the loop has ${expected}; ${same} of them have the same answer`);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
