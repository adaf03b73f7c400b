/** What lies in Redis behind a binary body: the body itself where it can, a frame of our own making where it cannot. */
import { Readable } from 'node:stream';
import { decodeFrame } from '@remuda/schemas';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { frame, x } from './bad-cases.js';
import { type CallInit, type Rig, setup } from './rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await setup();
});
afterAll(() => rig.close());

const submit = (model: string, init: CallInit) => rig.call('POST', `/v1/models/${model}/requests`, init);

/** The stored input of a request with one small item. */
async function stored(requestId: unknown): Promise<Buffer> {
  return (await rig.redis.hgetBuffer(rig.store.keys.record(String(requestId)), 'in')) as Buffer;
}

const STORED_X = [{ name: 'x', datatype: 'FP32', shape: [1, 3], bytes: Buffer.alloc(12) }];

it('a body with options keeps its header, and its tensors are read as they were sent', async () => {
  const init = frame(` { "metadata": {"priority": 2}, "inputs": [${JSON.stringify(x)}] } `);
  const { body } = await submit('rows', init);
  expect(body).toMatchObject({ metadata: { priority: 2 } });
  const bytes = await stored(body.request_id);
  expect(bytes.subarray(4)).toEqual(init.body);
  const { tensors, extras } = decodeFrame(bytes);
  expect(tensors).toEqual(STORED_X);
  expect(extras.parameters).toBeUndefined();
});

it('a body that does not say its length is stored alike', async () => {
  const { body, headers = {} } = frame({ inputs: [x] });
  const init = { method: 'POST', headers, body: Readable.toWeb(Readable.from([body])), duplex: 'half' };
  const answer = await fetch(`${rig.url}/v1/models/rows/requests`, init as RequestInit);
  expect(answer.status).toBe(202);
  const { request_id } = (await answer.json()) as { request_id: string };
  expect(decodeFrame(await stored(request_id)).tensors).toEqual(STORED_X);
});

it('tensors are stored in the order of the signature', async () => {
  const tensor = (name: string) => ({
    ...{ name, datatype: 'INT64', shape: [1, 1] },
    parameters: { binary_data_size: 8 },
  });
  const header = JSON.stringify({ inputs: [tensor('mask'), tensor('ids')] });
  const values = Buffer.from(new BigInt64Array([1n, 2n]).buffer);
  const { body } = await submit('pair', {
    ...frame(header),
    body: Buffer.concat([Buffer.from(header), values]),
  });
  const { tensors } = decodeFrame(await stored(body.request_id));
  expect(tensors.map(({ name }) => name)).toEqual(['ids', 'mask']);
  expect(tensors[0]?.bytes).toEqual(values.subarray(8));
});

it('a tensor whose elements stand in the header is stored as bytes', async () => {
  const inJson = { name: 'x', datatype: 'FP32', shape: [1, 3], data: [0, 0, 0] };
  const { body } = await submit('rows', frame({ inputs: [inJson] }, 0));
  expect(decodeFrame(await stored(body.request_id)).tensors).toEqual(STORED_X);
});

it('the defaults of the parameters are stored with the tensors', async () => {
  const { body } = await submit('tuned', frame({ inputs: [x] }));
  expect(decodeFrame(await stored(body.request_id)).extras.parameters).toEqual({ top_k: 2 });
});

it('one request_id and the same tensors are one request, however the header is written', async () => {
  const first = await submit('rows', frame({ request_id: 'same-tensors', inputs: [x] }));
  const second = await submit(
    'rows',
    frame(`{ "inputs": [${JSON.stringify(x)}], "request_id": "same-tensors" }`),
  );
  expect(second.status).toBe(202);
  expect(second.body.request_id).toBe(first.body.request_id);
});

it('a long header is not stored', async () => {
  const { body } = await submit('rows', frame(`${' '.repeat(5_000)}${JSON.stringify({ inputs: [x] })}`));
  const bytes = await stored(body.request_id);
  expect(bytes.length).toBeLessThan(1_000);
  expect(decodeFrame(bytes).tensors).toEqual(STORED_X);
});
