/**
 * Which rows were run how often, as the model itself saw it: a harness that writes a line for each batch before it runs it.
 * It asks neither the coordinator nor Redis, so it can tell what they have forgotten.
 */
import { readFileSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';

/** Bytes of a row that tell it from all others: three features. */
const MARK_BYTES = 12;
/** Their names in hexadecimal, and the order in which they lie. */
const MARK_COLUMNS = ['f0', 'f1', 'f2'] as const;

/**
 * The onnx kind that notes each batch in `log` and waits before it runs it: so there is time to kill, on a fast machine
 * too.
 * @param dir of test/models
 */
export async function witnessHarness(dir: URL, log: string, waitMs: number): Promise<string> {
  const script = new URL('harnessed-identity.mjs', dir).href;
  const { beforeEachRun } = (await import(script)) as {
    beforeEachRun(parts: { but: string; head: string; before: string[] }): string;
  };
  return beforeEachRun({
    but: 'a line for each batch, and a wait',
    head: `import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
`,
    before: [
      `const mark = Buffer.from(batch.inputs[0].bytes.subarray(0, ${MARK_BYTES})).toString('hex');`,
      `appendFileSync(${JSON.stringify(log)}, mark + ' ' + batch.rows + '\\n');`,
      `await sleep(${waitMs});`,
    ],
  });
}

/** Row of each mark. */
export async function marksOf(table: string): Promise<Map<string, number>> {
  const instance = await DuckDBInstance.create(':memory:', { temp_directory: '' });
  const connection = await instance.connect();
  try {
    const sql = `SELECT ${MARK_COLUMNS.join(', ')} FROM read_parquet('${table.replaceAll("'", "''")}') ORDER BY id`;
    const rows = (await connection.runAndReadAll(sql)).getRows() as number[][];
    const marks = new Map(rows.map((values, row) => [hexOf(values), row]));
    if (marks.size < rows.length) throw new Error('two rows of the table have the same mark');
    return marks;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

function hexOf(values: readonly number[]): string {
  return Buffer.from(Float32Array.from(values).buffer).toString('hex');
}

export interface Coverage {
  /** Rows begun at least once. */
  covered: number;
  /** Runs of rows beyond the first of each. */
  repeated: number;
}

export class RunWitness {
  readonly #log: string;
  readonly #marks: ReadonlyMap<string, number>;

  constructor(log: string, marks: ReadonlyMap<string, number>) {
    this.#log = log;
    this.#marks = marks;
  }

  /** @param from offset in the log: what was run before it is another job's */
  coverage(from = 0): Coverage {
    const times = new Uint32Array(this.#marks.size);
    for (const line of this.#read().slice(from).split('\n').slice(0, -1)) {
      const [mark = '', rows] = line.split(' ');
      const first = this.#marks.get(mark);
      // Warm-up rows are none of the table.
      if (first === undefined) continue;
      for (let row = first; row < first + Number(rows); row++) times[row] = (times[row] as number) + 1;
    }
    const covered = times.reduce((sum, count) => sum + Math.min(count, 1), 0);
    return { covered, repeated: times.reduce((sum, count) => sum + count, 0) - covered };
  }

  /** Where the log ends now. */
  get end(): number {
    return this.#read().length;
  }

  #read(): string {
    try {
      return readFileSync(this.#log, 'latin1');
    } catch {
      // No batch has run yet.
      return '';
    }
  }
}
