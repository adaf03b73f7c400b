/**
 * A runner whose store is a folder, for tests: `<id>-<item>.in` holds an input frame, `<id>-<item>.out` gets the outcome.
 * The name of a missing input says what the claim's verdict is: `fenced-…`, `expired-…`, else payload_missing. The rows
 * of a chunk travel as JSON: [{ id, x: [numbers] }, …]; one without x cannot be read.
 * Row n of a range of rows is { id: "r<n>", x: [n, 1, 2, 3] }, and each 10,007th cannot be read.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Column } from '../bulk/columns.js';
import type { InputRows } from '../bulk/row-items.js';
import type { ChunkTools } from '../bulk/run-chunk.js';
import { itemError } from '../errors.js';
import type { Claim } from '../store/outcome.js';
import { serveRunner } from './runner-child.js';
import type { BatchUnit } from './runner-protocol.js';

interface TestRow {
  id: string;
  x?: number[];
}

function madeRows(from: number, to: number): TestRow[] {
  return Array.from({ length: to - from }, (_, i) => {
    const n = from + i;
    return n % 10_007 === 10_006 ? { id: `r${n}` } : { id: `r${n}`, x: [n, 1, 2, 3] };
  });
}

const chunkTools = (): ChunkTools => ({
  rows: {
    async read({ rows, range }, payload) {
      const given =
        range.kind === 'rows'
          ? madeRows(range.from, range.to)
          : (JSON.parse(Buffer.from(payload ?? []).toString()) as TestRow[]);
      const unreadable = given.flatMap(({ x }, i) =>
        x ? [] : [[i, itemError('invalid_row', `row ${i} has no x`)] as const],
      );
      const columns: Column[] = [
        { name: 'id', type: 'string', values: given.map(({ id }) => id) },
        { name: 'x', type: 'json', values: given.map(({ x }) => x ?? null) },
      ];
      return { rows, columns, failures: new Map(unreadable) };
    },
    close: async () => {},
  },
  /** One run for each stretch of readable rows of one length. */
  map({ columns }) {
    const x = columns[1] as Extract<Column, { type: 'json' }>;
    const runs: InputRows[] = [];
    for (const [row, values] of (x.values as (number[] | null)[]).entries()) {
      if (!values) continue;
      const last = runs.at(-1);
      const bytes = new Uint8Array(Float32Array.from(values).buffer);
      const [tensor] = last?.tensors ?? [];
      if (last && tensor && last.from + last.rows === row && tensor.shape[1] === values.length) {
        last.rows++;
        last.tensors = [
          { ...tensor, shape: [last.rows, values.length], bytes: Buffer.concat([tensor.bytes, bytes]) },
        ];
      } else {
        const first = { name: 'x', datatype: 'FP32' as const, shape: [1, values.length], bytes };
        runs.push({ from: row, rows: 1, tensors: [first] });
      }
    }
    return { runs, failures: new Map() };
  },
  choose: (outputs) => outputs,
});

serveRunner(async ({ url }) => {
  const folder = fileURLToPath(url);
  const claim = async ({ requestId, item }: BatchUnit): Promise<Claim> => {
    if (requestId.startsWith('fenced')) return { verdict: 'fenced' };
    if (requestId.startsWith('expired')) return { verdict: 'expired_start' };
    try {
      return { verdict: 'run', payload: await readFile(join(folder, `${requestId}-${item}.in`)) };
    } catch {
      return { verdict: 'payload_missing' };
    }
  };
  return {
    store: {
      claimAndFetch: (units) => Promise.all(units.map(claim)),
      writeOutcomes: (writes) =>
        Promise.all(
          writes.map(async ({ unit, frame }) => {
            await writeFile(join(folder, `${unit.requestId}-${unit.item}.out`), frame);
            return { verdict: 'written' as const, ended: 'succeeded' as const };
          }),
        ),
    },
    close: () => {},
  };
}, chunkTools);
