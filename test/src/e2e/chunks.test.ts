/** Chunks of bulk jobs through a real worker and runner: what a coordinator can rely on. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChunkOrder, ChunkSource } from '@remuda/core/bulk/chunk';
import { type ChunkDoor, type ChunkEnd, chunkIdOf, type NewChunk } from '@remuda/core/bulk/chunk-door';
import { createChunkDoor } from '@remuda/core/bulk/create-chunk-door';
import { writeParquet } from '@remuda/core/bulk/input/columnar/columnar.fixture';
import { openColumnar } from '@remuda/core/bulk/input/columnar/open-columnar';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Rig, setup } from '../integration/requests/rig.js';
import { Fleet } from '../support/fleet.js';
import { testModels } from '../support/test-models.js';

const KEPT_MS = 60_000;

let models: string;
let folder: string;
let fleet: Fleet;
let rig: Rig;
let door: ChunkDoor;
beforeAll(async () => {
  models = await testModels();
  folder = mkdtempSync(join(tmpdir(), 'remuda-chunks-'));
  const env = { REMUDA_WORKER_MODELS: 'identity-fp32,crash-on-mark' };
  fleet = await Fleet.start({ models, env });
  rig = await setup({ url: fleet.redis.url, prefix: 'remuda' });
  door = createChunkDoor({ useCases: rig.cases, fleet: rig.cases.fleetView, store: rig.cases.store });
}, 120_000);
afterAll(async () => {
  await rig?.close();
  await fleet?.stop();
  for (const one of [models, folder]) rmSync(one, { recursive: true, force: true });
});

/** A JSONL file of rows that begin with these numbers. */
function sourceOf(name: string, firsts: readonly number[]): ChunkSource {
  const path = join(folder, name);
  writeFileSync(
    path,
    firsts.map((first, i) => `${JSON.stringify({ id: i, x: [first, 1, 2, 3] })}\n`).join(''),
  );
  const { size: bytes, mtimeMs } = statSync(path);
  return { path, bytes, mtimeMs };
}

async function chunkOf(model: string, source: ChunkSource, rows: number, part = '1'): Promise<NewChunk> {
  const order: ChunkOrder = {
    job: 'batch_test',
    firstRow: 0,
    rows,
    source,
    range: { kind: 'bytes', from: 0, to: source.bytes },
    read: { format: 'jsonl', lines: 'columns' },
    mapping: { inputs: [{ input: 'x', columns: ['x'], rowShape: [4] }], keep: ['id'], idColumn: null },
    choice: {},
  };
  return {
    id: chunkIdOf(model, 0, rows, part),
    target: await door.resolve(model),
    tenant: 'default',
    keyId: null,
    traceId: '0'.repeat(31).concat('1'),
    priority: 5,
    order,
    payload: null,
  };
}

async function endOf(chunk: NewChunk): Promise<ChunkEnd> {
  expect(await door.submit(chunk)).toBe('queued');
  const end = await door.wait(chunk.id, KEPT_MS);
  if (!end) throw new Error('it has not ended');
  return end;
}

describe('a chunk', () => {
  it('is read where its rows lie and answered whole; sent again it is the same, and then it can be forgotten', async () => {
    const firsts = Array.from({ length: 100 }, (_, i) => i);
    const chunk = await chunkOf('identity-fp32', sourceOf('rows.jsonl', firsts), 100);
    const end = await endOf(chunk);
    if (end.kind !== 'done') throw new Error(JSON.stringify(end));
    const [y] = end.result.outputs;
    const elements = new Float32Array(new Uint8Array(y?.bytes ?? []).buffer);
    expect(firsts.map((row) => elements[4 * row])).toEqual(firsts);
    const { digest } = chunk.target.signature;
    expect(end.result).toMatchObject({ rows: 100, failures: [], device: 'cpu', digest });
    expect(await door.submit(chunk)).toBe('known');
    await door.forget(chunk.id);
    expect(await door.wait(chunk.id, KEPT_MS)).toEqual({ kind: 'gone' });
    const left = await rig.redis.keys('remuda:{r0}:*:*');
    expect(left.filter((key) => key.includes(chunk.id))).toEqual([]);
  });

  it('whose answers Redis has lost can be sent again under its id', async () => {
    const chunk = await chunkOf('identity-fp32', sourceOf('lost.jsonl', [1]), 1, 'lost');
    await endOf(chunk);
    expect(await rig.redis.hdel(rig.keys.record(chunk.id), 'o:0')).toBe(1);
    expect(await door.wait(chunk.id, KEPT_MS)).toEqual({ kind: 'gone' });
    expect(await endOf(chunk)).toMatchObject({ kind: 'done' });
  });

  it('is shown in no list of requests', async () => {
    const chunk = await chunkOf('identity-fp32', sourceOf('hidden.jsonl', [1]), 1, 'hidden');
    await endOf(chunk);
    expect((await rig.cases.list({ limit: 100 })).requests).toEqual([]);
  });

  it('whose file a worker does not see, or sees as another, says so', async () => {
    const source = sourceOf('moved.jsonl', [1, 2]);
    for (const seen of [
      { ...source, path: join(folder, 'elsewhere.jsonl') },
      { ...source, mtimeMs: source.mtimeMs - 1_000 },
    ]) {
      const end = await endOf(
        await chunkOf('identity-fp32', seen, 2, `seen-${seen.mtimeMs === source.mtimeMs}`),
      );
      expect(end).toMatchObject({ kind: 'failed', error: { code: 'source_unreadable' } });
    }
  });

  it('of a Parquet file is read by number of row, or comes with its rows, and a row without a value fails alone', async () => {
    const path = join(folder, 'rows.parquet');
    await writeParquet(
      path,
      'SELECT i AS id, if(i = 2345, NULL, i)::FLOAT AS a, 1::DOUBLE AS b, 2::TINYINT AS c, 3::FLOAT AS d FROM range(5000) t(i)',
    );
    const { size: bytes, mtimeMs } = statSync(path);
    const model = 'identity-fp32';
    const whole = await chunkOf(model, { path, bytes, mtimeMs }, 3_000, 'parquet');
    const inputs = [{ input: 'x', columns: ['a', 'b', 'c', 'd'], rowShape: [4] }];
    const order: ChunkOrder = {
      ...whole.order,
      firstRow: 1_000,
      range: { kind: 'rows', from: 1_000, to: 4_000 },
      read: { format: 'parquet' },
      mapping: { inputs, keep: [], idColumn: 'id' },
    };
    const opened = await openColumnar({ path, read: order.read, compression: 'none' });
    const payload = await opened.payloadOf({ ...order }, ['id', 'a', 'b', 'c', 'd']);
    await opened.close();
    const travelling = { ...order, source: null, range: { kind: 'payload' } } as const;
    for (const chunk of [
      { ...whole, order },
      { ...whole, id: chunkIdOf(model, 0, 3_000, 'payload'), order: travelling, payload },
    ]) {
      const end = await endOf(chunk);
      if (end.kind !== 'done') throw new Error(JSON.stringify(end));
      const { outputs, ids, failures } = end.result;
      const elements = new Float32Array(new Uint8Array(outputs[0]?.bytes ?? []).buffer);
      const expected = Array.from({ length: 3_000 }, (_, i) => (i === 1_345 ? 0 : i + 1_000));
      expect(expected.map((_, row) => elements[4 * row])).toEqual(expected);
      expect(ids?.slice(0, 2)).toEqual(['1000', '1001']);
      expect(failures).toMatchObject([
        {
          index: 1_345,
          error: { code: 'invalid_row', message: expect.stringContaining('row 2345: column "a"') },
        },
      ]);
    }
  });

  it('that kills its runner ends with that reason, and is no dead letter: who sent it sends its halves', async () => {
    const chunk = await chunkOf('crash-on-mark', sourceOf('crash.jsonl', [1, 777, 3]), 3);
    expect(await endOf(chunk)).toMatchObject({
      ...{ kind: 'failed', error: { code: 'runner_crashed', details: { rows_done: 0, rows_running: 3 } } },
      again: 0,
    });
    const alone = { ...chunk, id: chunkIdOf('crash-on-mark', 0, 3, 'alone') };
    // One row is blamed only when it has killed two.
    expect(await endOf({ ...alone, order: { ...chunk.order, slice: { from: 1, to: 2 } } })).toMatchObject({
      ...{ kind: 'failed', error: { code: 'runner_crashed' } },
      again: 1,
    });
    const half = { ...chunk, id: chunkIdOf('crash-on-mark', 0, 3, 'half') };
    const end = await endOf({ ...half, order: { ...chunk.order, slice: { from: 2, to: 3 } } });
    expect(end).toMatchObject({ kind: 'done', result: { firstRow: 2, rows: 1, failures: [] }, again: 0 });
    expect(await rig.redis.zcard(rig.keys.dead(0))).toBe(0);
  });

  it('says how fast its model is, once it has run', async () => {
    const target = await door.resolve('identity-fp32');
    await expect
      .poll(() => door.pace(target), { timeout: KEPT_MS })
      .toMatchObject({ batchRows: 32, devices: 1, secondsPerRow: expect.any(Number) });
  });
});
