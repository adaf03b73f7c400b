/** POST /v1/requests:batch: each request is accepted or refused by itself. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Rig, setup } from './rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await setup();
});
afterAll(() => rig.close());

interface Result {
  status: number;
  record?: { request_id: string; model: string; trace_id: string; route: { lane: string } };
  problem?: { code: string; errors?: { path: string }[]; suggestions?: string[] };
}

const good = { model: 'rows', inputs: { x: [1, 2, 3] } };
const send = (requests: unknown[], more = {}) => rig.post('/v1/requests:batch', { requests, ...more });

it('good and bad ones keep their places', async () => {
  const { status, body } = await send([
    good,
    { ...good, inputs: { x: [1] } },
    { ...good, model: 'row' },
    { inputs: {} },
    'text',
    { model: 'text', items: [{ inputs: { words: 'a' } }, { inputs: { words: 'b' } }] },
    { ...good, priority: 1 },
  ]);
  expect(status).toBe(200);
  expect(body).toMatchObject({ accepted: 2, refused: 5 });
  const results = body.results as Result[];
  const told = results.map((result) => result.record?.model ?? [result.status, result.problem?.code]);
  expect(told).toEqual([
    'rows',
    [422, 'invalid_input'],
    [404, 'model_not_found'],
    [422, 'invalid_request'],
    [422, 'invalid_request'],
    'text',
    [422, 'invalid_request'],
  ]);
  const paths = results.map((result) => result.problem?.errors?.[0]?.path);
  expect(paths.filter((path) => path !== undefined)).toEqual([
    'requests[1].inputs.x',
    'requests[3].model',
    'requests[4]',
    'requests[6].priority',
  ]);
  expect(results[2]?.problem?.suggestions).toEqual(['rows']);
});

it('a thousand are taken in one call, each with a trace of its own, in the lane that was asked for', async () => {
  const { body } = await send(Array(1_000).fill(good), { lane: 'bulk' });
  expect(body).toMatchObject({ accepted: 1_000, refused: 0 });
  const records = (body.results as Result[]).map(({ record }) => record);
  expect(new Set(records.map((record) => record?.request_id)).size).toBe(1_000);
  expect(new Set(records.map((record) => record?.trace_id)).size).toBe(1_000);
  expect(records.every((record) => record?.route.lane === 'bulk')).toBe(true);
});

it('an id that comes twice with the same content is one request', async () => {
  const named = { ...good, request_id: 'in-a-batch' };
  const { body } = await send([named, named, { ...named, inputs: { x: [3, 2, 1] } }]);
  const results = body.results as Result[];
  expect(results.map(({ status }) => status)).toEqual([202, 202, 409]);
});

it('the call itself is refused where its shape is wrong', async () => {
  expect((await send([])).body).toMatchObject({ status: 422, errors: [{ path: 'requests' }] });
  expect((await send(Array(1_001).fill(good))).body).toMatchObject({
    status: 422,
    errors: [{ path: 'requests' }],
  });
  expect((await send([good], { lanes: 'bulk' })).body).toMatchObject({
    status: 422,
    errors: [{ path: 'lanes' }],
  });
  const binary = { body: 'x', headers: { 'content-type': 'application/octet-stream' } };
  const answer = await rig.call('POST', '/v1/requests:batch', binary);
  expect(answer.body).toMatchObject({ status: 415, code: 'unsupported_media_type' });
});
