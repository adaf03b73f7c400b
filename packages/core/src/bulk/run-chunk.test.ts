import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { asElements } from '../harness/onnx-types.js';
import { lossOf, setup, stopRunners } from '../inference/runner-setup.fixture.js';
import { makeModels } from '../inference/test-models.fixture.js';
import type { ChunkResult } from './chunk.js';

let repository: string;
beforeAll(async () => {
  repository = await makeModels();
});
afterEach(stopRunners);

/** Rows that begin with their number. */
const rowsFrom = (count: number, over: Record<number, { x?: number[] }> = {}) =>
  Array.from({ length: count }, (_, i) => ({ id: `r${i}`, x: [i, 1, 2, 3], ...over[i] }));

/** The first element of each row's y. */
function firsts({ outputs: [y], rows }: ChunkResult): number[] {
  if (!y || y.datatype === 'BYTES') throw new Error('no y');
  const elements = asElements(y.datatype, y.bytes) as Float32Array;
  return Array.from({ length: rows }, (_, row) => elements[(row * elements.length) / rows] as number);
}

describe('a chunk in a runner', () => {
  it('answers each row in its place, in as few full batches as hold them', async () => {
    const { load, runChunk } = await setup(repository);
    await load('identity-fp32', { max_batch_size: 8 });
    const { report, result } = await runChunk('identity-fp32', rowsFrom(21));
    expect(report.outcomes).toEqual([{ kind: 'written', ok: true, ended: 'succeeded' }]);
    expect(report.runs.map(({ rows }) => rows)).toEqual([8, 8, 5]);
    const answers = await result();
    const native = report.runs.reduce((sum, { seconds }) => sum + seconds, 0);
    expect(answers.seconds).toBeCloseTo(native, 6);
    expect(answers).toMatchObject({ firstRow: 1_000, rows: 21, failures: [], device: 'cpu', workerId: 'w' });
    expect(answers.outputs).toMatchObject([{ name: 'y', datatype: 'FP32', shape: [4] }]);
    expect(firsts(answers)).toEqual(rowsFrom(21).map(({ x }) => x[0]));
    expect(answers.ids).toEqual(rowsFrom(21).map(({ id }) => id));
    expect(answers.kept).toMatchObject([{ name: 'id', values: answers.ids }]);
  });

  it('lets what cannot be read, and what a kernel fails on, fail alone, with the row as it came', async () => {
    const { load, runChunk } = await setup(repository);
    await load('fail-on-mark', { max_batch_size: 8 });
    const rows = rowsFrom(20, { 3: { x: undefined }, 11: { x: [666, 0, 0, 0] }, 13: { x: [666, 1, 1, 1] } });
    const { result } = await runChunk('fail-on-mark', rows);
    const answers = await result();
    expect(answers.failures).toMatchObject([
      { index: 3, error: { code: 'invalid_row' }, input: { id: 'r3', x: null } },
      { index: 11, error: { code: 'inference_failed' }, input: { id: 'r11', x: [666, 0, 0, 0] } },
      { index: 13, error: { code: 'inference_failed' } },
    ]);
    const failed = new Set([3, 11, 13]);
    expect(firsts(answers).filter((_, row) => !failed.has(row))).toEqual(
      rows.flatMap(({ x }, row) => (failed.has(row) || !x ? [] : [x[0]])),
    );
  });

  it('runs only the rows of its slice', async () => {
    const { load, runChunk } = await setup(repository);
    await load('identity-fp32', { max_batch_size: 8 });
    const { result } = await runChunk('identity-fp32', rowsFrom(20), { slice: { from: 5, to: 9 } });
    const answers = await result();
    expect(answers).toMatchObject({ firstRow: 1_005, rows: 4, ids: ['r5', 'r6', 'r7', 'r8'] });
    expect(firsts(answers)).toEqual([5, 6, 7, 8]);
  });

  it('of many rows of a file is read in blocks, and answered as one', async () => {
    const { load, runChunk } = await setup(repository);
    await load('identity-fp32', { max_batch_size: 512 });
    const [from, to] = [100, 40_000];
    const { report, result } = await runChunk('identity-fp32', [], {
      rows: 45_000,
      firstRow: 7_000_000,
      range: { kind: 'rows', from: 3, to: 45_003 },
      slice: { from, to },
    });
    const answers = await result();
    const numbers = Array.from({ length: to - from }, (_, i) => 3 + from + i);
    const failed = numbers.flatMap((n, i) => (n % 10_007 === 10_006 ? [i] : []));
    expect(answers).toMatchObject({ firstRow: 7_000_100, rows: to - from });
    expect(answers.failures.map(({ index }) => index)).toEqual(failed);
    expect(answers.failures[0]?.input).toEqual({ id: 'r10006', x: null });
    expect(answers.ids).toEqual(numbers.map((n) => `r${n}`));
    expect(firsts(answers)).toEqual(numbers.map((n, i) => (failed.includes(i) ? 0 : n)));
    expect(report.runs.every(({ rows }) => rows <= 512)).toBe(true);
  });

  it('gives rows of other shapes as they are', async () => {
    const { load, runChunk } = await setup(repository);
    await load('variable-length', { max_batch_size: 8 });
    const { result } = await runChunk('variable-length', rowsFrom(3, { 1: { x: [7] } }));
    const { outputs, failures } = await result();
    expect(failures).toEqual([]);
    expect(outputs).toMatchObject([{ shape: null, shapes: [[4], [1], [4]] }]);
  });

  it('takes models whose rows lie along another axis, or that take one row only, row by row', async () => {
    const { load, runChunk } = await setup(repository);
    await load('fixed-batch');
    const { report, result } = await runChunk('fixed-batch', rowsFrom(3));
    expect(report.runs.map(({ rows }) => rows)).toEqual([1, 1, 1]);
    expect(firsts(await result())).toEqual([0, 1, 2]);
  });

  it('is answered with no output at all where every row has failed', async () => {
    const { load, runChunk } = await setup(repository);
    await load('identity-fp32');
    const { result } = await runChunk('identity-fp32', [{ id: 'a' }, { id: 'b' }]);
    expect(await result()).toMatchObject({ rows: 2, outputs: [], failures: [{ index: 0 }, { index: 1 }] });
  });

  it('is the one suspect where a row of it kills the process', async () => {
    const { load, runChunk } = await setup(repository);
    await load('crash-on-mark');
    const loss = await lossOf(runChunk('crash-on-mark', rowsFrom(40, { 33: { x: [777, 0, 0, 0] } })));
    expect(loss).toMatchObject({ suspect: true, suspects: 1 });
  });
});
