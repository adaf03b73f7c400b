/** Models with a result cache, with real workers: what is identical runs once, whoever dies meanwhile. */
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RequestRecord } from '@remuda/schemas';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { Gate } from '../support/gate.js';
import { testModels } from '../support/test-models.js';

let models: string;
let gate: Gate;
let fleet: Fleet;
beforeAll(async () => {
  models = await testModels();
  appendFileSync(join(models, 'gated/model.yaml'), 'result_cache: {ttl_s: 600, max_bytes: 1000000}\n');
  gate = new Gate(models);
  const env = { REMUDA_WORKER_MODELS: 'gated', REMUDA_WORKER_LOCK_MS: '2000' };
  fleet = await Fleet.start({ models, workers: 2, env });
}, 120_000);
beforeEach(() => gate.open());
afterAll(async () => {
  gate.open();
  await fleet?.stop();
  rmSync(models, { recursive: true, force: true });
});

const request = (first: number, more = {}) => ({
  inputs: { x: { datatype: 'FP32', shape: [1, 4], data: [first, 1, 2, 3] } },
  ...more,
});
const submit = async (first: number): Promise<RequestRecord> => {
  const { status, body } = await fleet.api.submit('gated', request(first));
  expect(status).toBe(202);
  return body;
};
/** Batches that had the request. */
const batchesOf = (id: string) =>
  fleet.logged('batched').filter(({ request_ids }) => (request_ids as string[]).includes(id));
/** One after another: the machine may be busy with others. */
async function firstsOf(ids: readonly string[]): Promise<Set<number | undefined>> {
  const firsts = new Set<number | undefined>();
  for (const id of ids) firsts.add(await firstOf(id));
  return firsts;
}
const firstOf = async (id: string) => {
  const { outputs } = await fleet.api.result(id);
  return (outputs?.y as { data: number[] } | undefined)?.data[0];
};

it('a hundred identical requests are one run, and each has its answer', async () => {
  gate.close();
  const same: RequestRecord[] = [];
  while (same.length < 100) same.push(...(await Promise.all(Array.from({ length: 5 }, () => submit(5)))));
  const other = await submit(6);
  gate.open();
  const ended = await fleet.api.settle(60);
  expect(new Set(ended.values())).toEqual(new Set(['succeeded']));
  const ids = same.map(({ request_id }) => request_id);
  expect(await firstsOf(ids)).toEqual(new Set([5]));
  expect(await firstOf(other.request_id)).toBe(6);
  await expect.poll(() => batchesOf(other.request_id)).toHaveLength(1);
  expect(ids.filter((id) => batchesOf(id).length > 0)).toHaveLength(1);
  // And those to come are answered without a run.
  const late = await fleet.api.run('gated', request(5));
  expect(late).toMatchObject({ status: 'succeeded', attempts: 0, started_at: null });
  expect(await firstOf(late.request_id)).toBe(5);
});

it('a worker that dies with the first of them leaves nobody without an answer', async () => {
  gate.close();
  const same = await Promise.all(Array.from({ length: 10 }, () => submit(7)));
  const ids = same.map(({ request_id }) => request_id);
  const holders = () => ids.flatMap((id) => batchesOf(id)).map(({ worker_id }) => String(worker_id));
  await expect.poll(() => holders().length).toBe(1);
  const holder = fleet.workers.find(({ pid }) => holders()[0]?.includes(`-${pid}-`));
  holder?.child.kill('SIGKILL');
  await holder?.ended;
  gate.open();
  const ended = await fleet.api.settle(60);
  expect(ids.map((id) => ended.get(id))).toEqual(ids.map(() => 'succeeded'));
  expect(await firstsOf(ids)).toEqual(new Set([7]));
});

it('is switched off and on while it serves', async () => {
  await fleet.api.run('gated', request(8));
  const attempts = async () => (await fleet.api.run('gated', request(8))).attempts;
  await expect.poll(attempts).toBe(0);
  const set = (result_cache: unknown) =>
    fleet.api.call('PATCH', '/v1/admin/models/gated', {
      body: JSON.stringify({ settings: { result_cache } }),
      headers: { 'content-type': 'application/json' },
    });
  expect((await set(null)).status).toBe(200);
  await expect.poll(attempts).toBe(1);
  expect((await set({ ttl_s: 60 })).status).toBe(200);
  await expect.poll(attempts).toBe(0);
  expect(await set({ ttl_s: -1 })).toMatchObject({ status: 422, body: { code: 'invalid_request' } });
});
