/** For tests: a started runner whose store is a folder, and what a test does with it. */
import { mkdtempSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { decodeFrame, encodeFrame, type RawTensor } from '@remuda/schemas';
import type { ChunkOrder, ChunkResult } from '../bulk/chunk.js';
import { decodeResult, encodeOrder } from '../bulk/chunk-codec.js';
import { builtFile } from './built-file.js';
import {
  type BatchReport,
  type LoadOptions,
  type RunnerEnd,
  RunnerLostError,
  RunnerProcess,
  type RunnerProcessOptions,
} from './runner-process.js';
import type { BatchUnit } from './runner-protocol.js';
import { sourceOf } from './test-models.fixture.js';

const running: RunnerProcess[] = [];

/** Stops every runner that was set up; for afterEach. */
export async function stopRunners(): Promise<void> {
  await Promise.all(running.splice(0).map((runner) => runner.stop()));
}

/** A started runner whose store is a folder, and what a test does with it. */
export async function setup(repository: string, options: Partial<RunnerProcessOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'remuda-runner-'));
  const lost: RunnerEnd[] = [];
  const runner = new RunnerProcess({
    device: 'cpu',
    store: { url: pathToFileURL(`${folder}/`).href, keyspace: { prefix: 'test', shards: 1 } },
    entry: builtFile('./runner-child.fixture.js', import.meta.url),
    log: () => {},
    onLost: (end) => lost.push(end),
    ...options,
  });
  running.push(runner);
  await runner.start();
  let batches = 0;

  const put = async (id: string, inputs: RawTensor[], parameters = {}): Promise<BatchUnit> => {
    await writeFile(join(folder, `${id}-0.in`), encodeFrame('inputs', inputs, { parameters }));
    return unit(id, inputs[0]?.shape[0] ?? 1);
  };
  const run = (model: string, units: BatchUnit[]): Promise<BatchReport> =>
    runner.run({ modelId: `${model}@1`, batchId: `bat_${batches++}`, units, workerId: 'w' });
  /** Puts rows as runner-child.fixture.ts has them, and runs them as a chunk. */
  const runChunk = async (
    model: string,
    rows: readonly { id: string; x?: number[] }[],
    order: Partial<ChunkOrder> = {},
  ): Promise<{ report: BatchReport; result(): Promise<ChunkResult> }> => {
    const id = `chunk-${batches}`;
    const whole: ChunkOrder = { ...CHUNK, rows: rows.length, ...order };
    await writeFile(join(folder, `${id}-0.in`), encodeOrder(whole, Buffer.from(JSON.stringify(rows))));
    const units = [unit(id, rows.length)];
    const batchId = `bat_${batches++}`;
    const report = await runner.run({ modelId: `${model}@1`, batchId, units, workerId: 'w', chunk: true });
    return { report, result: async () => decodeResult(await readFile(join(folder, `${id}-0.out`))) };
  };
  const answer = async (id: string) => decodeFrame(await readFile(join(folder, `${id}-0.out`)));
  const load = (model: string, changes = {}, options: LoadOptions = {}) =>
    runner.load(sourceOf(repository, model, changes), options);
  return { runner, lost, put, run, runChunk, answer, load };
}

const CHUNK: ChunkOrder = {
  job: 'batch_a',
  firstRow: 1_000,
  rows: 0,
  source: null,
  range: { kind: 'payload' },
  read: { format: 'jsonl' },
  mapping: { inputs: [{ input: 'x', columns: ['x'], rowShape: [4] }], keep: ['id'], idColumn: 'id' },
  choice: {},
};

export function unit(requestId: string, rows = 1): BatchUnit {
  const acceptedAt = Date.now();
  return { requestId, token: 1, item: 0, rows, nonce: 'n', inline: false, traceId: 't', acceptedAt };
}

export const floats = (name: string, shape: number[], ...values: number[]): RawTensor => ({
  name,
  datatype: 'FP32',
  shape,
  bytes: new Uint8Array(Float32Array.from(values).buffer),
});
export const row = (...values: number[]): RawTensor[] => [floats('x', [1, 4], ...values)];
export const numbers = (tensor: RawTensor | undefined): number[] =>
  tensor ? [...new Float32Array(new Uint8Array(tensor.bytes).buffer)] : [];
export const work = (iterations: bigint): RawTensor => ({
  name: 'iterations',
  datatype: 'INT64',
  shape: [],
  bytes: new Uint8Array(BigInt64Array.of(iterations).buffer),
});
export const lossOf = (run: Promise<unknown>): Promise<RunnerLostError> =>
  run.then(
    () => Promise.reject(new Error('it was answered')),
    (error) => (error instanceof RunnerLostError ? error : Promise.reject(error)),
  );
