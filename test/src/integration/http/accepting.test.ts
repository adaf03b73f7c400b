/** Every kind of body that is taken, the answer to it, and what lies in Redis behind the 202. */
import { decodeFrame, encodeBinaryBody, type RawTensor, splitBytesElements } from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type CallInit, type Rig, setup } from './rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await setup();
});
afterAll(() => rig.close());

const ROW = [1, 2, 3];
const bytes = new Uint8Array(new Float32Array(ROW).buffer);
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47]);

/** The stored inputs of a request with one small item. */
async function storedInputs({ body }: Answer) {
  const fields = await rig.redis.hgetallBuffer(rig.store.keys.record(String(body.request_id)));
  return decodeFrame(fields.in as Buffer).tensors;
}

const submit = (model: string, init: CallInit) => rig.call('POST', `/v1/models/${model}/requests`, init);

it('JSON is taken: 202 with the record and its place', async () => {
  const answer = await rig.post('/v1/models/rows/requests', {
    inputs: { x: [ROW] },
    metadata: { tags: { a: 'b' } },
  });
  expect(answer.status).toBe(202);
  const { request_id } = answer.body;
  expect(answer.body).toMatchObject({
    model: 'rows',
    version: '1',
    status: 'queued',
    rows: 1,
    items: { total: 1, succeeded: 0, failed: 0 },
    metadata: { priority: 5, tags: { a: 'b' } },
    notices: ['no live worker serves this model; it waits in the queue'],
  });
  expect(answer.headers.get('location')).toBe(`/v1/requests/${request_id}`);
  expect(answer.headers.get('x-request-id')).toBe(request_id);
  expect((await rig.call('GET', `/v1/requests/${request_id}`)).body.status).toBe('queued');
});

describe('the same tensor is stored', () => {
  const header: RawTensor = { name: 'x', datatype: 'FP32', shape: [1, 3], bytes };
  const binary = encodeBinaryBody('inputs', [header]);
  const json = (value: unknown): CallInit => ({
    body: JSON.stringify({ inputs: { x: value } }),
    headers: { 'content-type': 'application/json' },
  });
  it.each<[string, CallInit]>([
    ['bare', json([ROW])],
    ['bare, without the batch axis', json(ROW)],
    ['as elements', json({ datatype: 'FP32', shape: [1, 3], data: ROW })],
    ['in base64', json({ datatype: 'FP32', shape: [1, 3], b64: Buffer.from(bytes).toString('base64') })],
    [
      'binary',
      {
        body: binary.body,
        headers: {
          'content-type': 'application/octet-stream',
          'inference-header-content-length': String(binary.headerLength),
        },
      },
    ],
  ])('whether it came %s', async (_, init) => {
    const answer = await submit('rows', init);
    expect(answer.status).toBe(202);
    expect(await storedInputs(answer)).toEqual([
      { name: 'x', datatype: 'FP32', shape: [1, 3], bytes: Buffer.from(bytes) },
    ]);
  });
});

describe('the same image is stored', () => {
  const text = PNG.toString('base64');
  const form = new FormData();
  form.append('image', new Blob([PNG]), 'a.png');
  const json = (image: unknown): CallInit => ({
    body: JSON.stringify({ inputs: { image } }),
    headers: { 'content-type': 'application/json' },
  });
  it.each<[string, CallInit]>([
    ['in base64', json(text)],
    ['as a data URL', json(`data:image/png;base64,${text}`)],
    ['as an array', json([text])],
    ['as a BYTES tensor', json({ datatype: 'BYTES', shape: [1], data: [text] })],
    ['as a body', { body: PNG, headers: { 'content-type': 'image/png' } }],
    ['in a form', { body: form }],
  ])('whether it came %s', async (_, init) => {
    const answer = await submit('picture', init);
    expect(answer.status).toBe(202);
    const [image] = await storedInputs(answer);
    expect(image).toMatchObject({ name: 'image', datatype: 'BYTES', shape: [1] });
    expect(splitBytesElements(image?.bytes as Uint8Array)).toEqual([PNG]);
  });
});

it('options come with the query of an image, and with the JSON part of a form', async () => {
  const image = await rig.call('POST', '/v1/models/picture/requests?priority=1&timeout_ms=60000', {
    body: PNG,
    headers: { 'content-type': 'image/png' },
  });
  expect(image.body.metadata).toMatchObject({ priority: 1, timeout_ms: 60_000 });
  const body = new FormData();
  body.append('request', '{"request_id":"of-a-form","metadata":{"priority":2}}');
  body.append('image', new Blob([PNG]), 'a.png');
  const form = await submit('picture', { body });
  expect(form.body).toMatchObject({ request_id: 'of-a-form', metadata: { priority: 2 } });
});

it('several files of a form are items', async () => {
  const body = new FormData();
  for (const name of ['a.png', 'b.png']) body.append('image', new Blob([PNG]), name);
  const { body: record } = await submit('picture', { body });
  expect(record).toMatchObject({ items: { total: 2 }, rows: 2 });
});

it('items of a binary body are cut out of one stretch of bytes', async () => {
  const x = { name: 'x', datatype: 'FP32', shape: [1, 3], parameters: { binary_data_size: 12 } };
  const header = JSON.stringify({ items: [{ id: 'one', inputs: [x] }, { inputs: [x] }] });
  const { body } = await submit('rows', {
    body: Buffer.concat([Buffer.from(header), bytes, bytes]),
    headers: {
      'content-type': 'application/octet-stream',
      'inference-header-content-length': String(header.length),
    },
  });
  expect(body).toMatchObject({ items: { total: 2 }, rows: 2 });
});

it('parameters of the model are filled in with its defaults', async () => {
  const given = await rig.post('/v1/models/tuned/requests', { inputs: { x: ROW }, parameters: { top_k: 3 } });
  expect(given.status).toBe(202);
  const left = await rig.post('/v1/models/tuned/requests', { inputs: { x: ROW } });
  const [record] = await rig.store.read([String(left.body.request_id)]);
  expect(record?.document.parameters).toEqual({ top_k: 2 });
});

it('the same id and content is one request, other content is a conflict', async () => {
  const request = { request_id: 'twice', inputs: { x: ROW } };
  const first = await rig.post('/v1/models/rows/requests', request);
  const again = await rig.post('/v1/models/rows/requests', request);
  expect(again.status).toBe(202);
  expect(again.body.created_at).toBe(first.body.created_at);
  const other = await rig.post('/v1/models/rows/requests', { ...request, inputs: { x: [3, 2, 1] } });
  expect(other.body).toMatchObject({ status: 409, code: 'request_id_conflict' });
});

it('the trace of the caller is kept, in the answer, the record and the log', async () => {
  const trace = 'c0ffee00c0ffee00c0ffee00c0ffee00';
  const headers = { traceparent: `00-${trace}-00f067aa0ba902b7-01` };
  const answer = await rig.post('/v1/models/rows/requests', { inputs: { x: ROW } }, headers);
  expect(answer.headers.get('traceparent')).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
  expect(answer.body.trace_id).toBe(trace);
  const events = rig.log.filter((line) => line.trace_id === trace).map((line) => line.event);
  expect(events).toEqual(['accepted', 'routed', 'enqueued']);
  const refused = await rig.post('/v1/models/rows/requests', {}, headers);
  expect(refused.body.trace_id).toBe(trace);
  expect(rig.log.at(-1)).toMatchObject({ event: 'refused', trace_id: trace, code: 'invalid_request' });
});
