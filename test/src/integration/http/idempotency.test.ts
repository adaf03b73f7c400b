/** A call with an Idempotency-Key is made once, however often it is sent, and is answered as before. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { frame, x } from './bad-cases.js';
import { type Answer, type Rig, setup } from './rig.js';

let rig: Rig;
let other: Rig;
beforeAll(async () => {
  rig = await setup();
  other = await setup({ env: { REMUDA_KEY_PREFIX: rig.keys.space.prefix } });
});
afterAll(async () => {
  await other.close();
  await rig.close();
});

const PATH = '/v1/models/rows/requests';
const BODY = { inputs: { x: [1, 2, 3] } };
let keys = 0;
const newKey = () => `"key ${keys++}"`;
const send = (
  key: string,
  body: unknown = BODY,
  more: Record<string, string> = {},
  to = rig,
): Promise<Answer> => to.post(PATH, body, { 'idempotency-key': key, ...more });
const open = () => rig.store.countOpen();
const replayed = ({ headers }: Answer) => headers.get('idempotent-replayed');

describe('a call that is sent again', () => {
  it('makes nothing new, and is answered as the first time, by another server too', async () => {
    const key = newKey();
    const first = await send(key);
    const before = await open();
    for (const to of [rig, other]) {
      const again = await send(key, BODY, {}, to);
      expect(again.status).toBe(202);
      expect(again.bytes).toEqual(first.bytes);
      for (const header of ['location', 'x-request-id', 'content-type'])
        expect(again.headers.get(header)).toBe(first.headers.get(header));
      expect(replayed(again)).toBe('true');
    }
    expect(replayed(first)).toBeNull();
    expect(await open()).toBe(before);
  });

  it('may be written in another way: order of keys, white space, form of numbers, order of headers', async () => {
    const key = newKey();
    const first = await send(key, {
      inputs: { x: [1, 2, 30] },
      metadata: { priority: 3, tags: { a: 'b', c: 'd' } },
    });
    const again = await rig.call('POST', PATH, {
      body: ' {"metadata": {"tags": {"c":"d", "a":"b"}, "priority":3.0}, "inputs":{"x":[1.0,2,3e1]}}',
      headers: {
        'idempotency-key': key,
        prefer: 'respond-async',
        'content-type': 'application/json; charset=utf-8',
      },
    });
    expect(again.body.request_id).toBe(first.body.request_id);
  });

  it('with another body or to another path is refused, and changes nothing', async () => {
    const key = newKey();
    await send(key);
    const before = await open();
    const answers = [
      await send(key, { inputs: { x: [1, 2, 4] } }),
      await send(key, { ...BODY, metadata: { priority: 1 } }),
      await rig.post('/v1/models/tuned/requests', BODY, { 'idempotency-key': key }),
    ];
    for (const { body } of answers) expect(body).toMatchObject({ status: 422, code: 'idempotency_mismatch' });
    expect(await open()).toBe(before);
  });

  it('waits with Prefer: wait as the first one may have done', async () => {
    const key = newKey();
    const { body } = await send(key);
    const again = send(key, BODY, { prefer: 'wait=30' });
    await rig.call('DELETE', `/v1/requests/${body.request_id}`);
    expect(await again).toMatchObject({
      status: 200,
      body: { request_id: body.request_id, status: 'cancelled' },
    });
    expect((await send(key)).body).toMatchObject({ request_id: body.request_id, status: 'queued' });
  });

  it('is answered though its model could not be sent to any more', async () => {
    const key = newKey();
    const { body } = await send(key);
    await rig.redis.del(rig.keys.record(String(body.request_id)));
    expect((await send(key)).body.request_id).toBe(body.request_id);
  });

  it('is a new call when the time of the key is over', async () => {
    const key = newKey();
    const first = await send(key);
    const names = await rig.redis.keys(rig.keys.once('*'));
    const times = await Promise.all(names.map((name) => rig.redis.pttl(name)));
    expect(Math.max(...times)).toBeGreaterThan(86_000_000);
    expect(Math.max(...times)).toBeLessThanOrEqual(86_400_000);
    await rig.redis.del(...names);
    expect((await send(key)).body.request_id).not.toBe(first.body.request_id);
  });

  it('is compared by what binary bodies and forms hold', async () => {
    const binary = (key: string, body: Uint8Array) => {
      const { headers } = frame({ inputs: [x] });
      return rig.call('POST', PATH, { body, headers: { ...headers, 'idempotency-key': key } });
    };
    const key = newKey();
    const { body: bytes } = frame({ inputs: [x] });
    const first = await binary(key, bytes as Uint8Array);
    expect(first.status).toBe(202);
    expect((await binary(key, bytes as Uint8Array)).body.request_id).toBe(first.body.request_id);
    const changed = Buffer.from(bytes as Uint8Array);
    changed[changed.length - 1] = 1;
    expect((await binary(key, changed)).status).toBe(422);

    const form = (key: string, text: string) => {
      const body = new FormData();
      body.append('image', new Blob([text]), 'a.png');
      return rig.call('POST', '/v1/models/picture/requests', { body, headers: { 'idempotency-key': key } });
    };
    const second = newKey();
    const image = await form(second, 'one');
    expect(image.status).toBe(202);
    expect((await form(second, 'one')).body.request_id).toBe(image.body.request_id);
    expect((await form(second, 'two')).status).toBe(422);
  });
});

describe('a batch with a key', () => {
  const batch = (key: string, requests: unknown[]) =>
    rig.post('/v1/requests:batch', { requests }, { 'idempotency-key': key });
  const good = { model: 'rows', ...BODY };

  it('is accepted once, and answered with what was accepted and refused', async () => {
    const key = newKey();
    const requests = [good, { ...good, model: 'nowhere' }, good];
    const first = await batch(key, requests);
    expect(first.body).toMatchObject({ accepted: 2, refused: 1 });
    const before = await open();
    const again = await batch(key, requests);
    expect(again.bytes).toEqual(first.bytes);
    expect(replayed(again)).toBe('true');
    expect(await open()).toBe(before);
  });

  it('of which nothing was accepted leaves the key free', async () => {
    const key = newKey();
    expect((await batch(key, [{ ...good, model: 'nowhere' }])).body).toMatchObject({ accepted: 0 });
    expect((await batch(key, [good])).body).toMatchObject({ accepted: 1 });
  });

  it('of a thousand is kept in little room', async () => {
    const key = newKey();
    const requests = Array(1_000).fill(good);
    const first = await batch(key, requests);
    expect((await batch(key, requests)).bytes.equals(first.bytes)).toBe(true);
    const names = await rig.redis.keys(rig.keys.once('*'));
    const sizes = await Promise.all(names.map((name) => rig.redis.hstrlen(name, 'body')));
    expect(Math.max(...sizes)).toBeLessThan(first.bytes.length / 5);
  });
});

describe('a call that was refused', () => {
  it('leaves the key free for a better body', async () => {
    const key = newKey();
    expect((await send(key, { inputs: { x: [1] } })).status).toBe(422);
    expect((await send(key)).status).toBe(202);
  });

  it('for want of room may be sent again', async () => {
    const full = await setup({ env: { REMUDA_API_MAX_QUEUE_DEPTH: '1' } });
    const key = newKey();
    expect((await full.post(PATH, BODY)).status).toBe(202);
    expect((await send(key, BODY, {}, full)).status).toBe(429);
    // Before anything of it is read, so that nothing is bound to the key.
    const { requests } = (await full.call('GET', '/v1/requests')).body as unknown as {
      requests: [{ request_id: string }];
    };
    await full.call('DELETE', `/v1/requests/${requests[0].request_id}`);
    await expect.poll(async () => (await send(key, { inputs: { x: [4, 5, 6] } }, {}, full)).status).toBe(202);
    await full.close();
  });
});

it.each(['key', '""', '"a" "b"', '"a", "b"', '"a\\b"', `"${'a'.repeat(256)}"`])(
  'a key that is no string in quotes is refused: %s',
  async (key) => {
    expect((await send(key)).body).toMatchObject({
      ...{ status: 400, code: 'idempotency_key_invalid' },
      errors: [{ path: 'Idempotency-Key', received: key }],
    });
  },
);

it.each([`"${'a'.repeat(255)}"`, '"with \\"quotes\\" and \\\\"', '"with"; parameters=1'])(
  'a key may be %s',
  async (key) => {
    expect((await send(key)).status).toBe(202);
  },
);

it('of calls at the same time on two servers one is accepted, the others are told to wait', async () => {
  const key = newKey();
  const before = await open();
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => send(key, BODY, {}, i % 2 === 0 ? rig : other)),
  );
  expect(await open()).toBe(before + 1);
  const ids = new Set(answers.filter(({ status }) => status === 202).map(({ body }) => body.request_id));
  expect(ids.size).toBe(1);
  for (const { status, body, headers } of answers) {
    if (status === 202) continue;
    expect(body).toMatchObject({ status: 409, code: 'idempotency_in_progress', retryable: true });
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
});

it("a user's own request_id is one request in JSON, in a batch and as binary", async () => {
  const id = 'own';
  const { body: first } = await rig.post(PATH, {
    request_id: id,
    inputs: { x: { datatype: 'FP32', shape: [1, 3], data: [0, 0, 0] } },
  });
  expect(first.request_id).toBe(id);
  const before = await open();
  const binary = await rig.call('POST', PATH, frame({ request_id: id, inputs: [x] }));
  const bare = await rig.call('POST', PATH, {
    body: `{"inputs": {"x": [0.0, 0e5, 0]}, "request_id": "${id}"}`,
    headers: { 'content-type': 'application/json' },
  });
  const batch = await rig.post('/v1/requests:batch', {
    requests: [{ inputs: { x: [0, 0, 0] }, request_id: id, model: 'rows' }],
  });
  const results = batch.body.results as { record: { created_at: string } }[];
  const times = [binary.body, bare.body, results[0]?.record].map((record) => record?.created_at);
  expect(new Set([first.created_at, ...times]).size).toBe(1);
  expect(await open()).toBe(before);
});

it('nor does it depend on the order of parameters', async () => {
  const path = '/v1/models/tuned/requests';
  const body = (parameters: unknown) => ({ request_id: 'ordered', ...BODY, parameters });
  const first = await rig.post(path, body({ top_k: 2 }));
  expect(first.status).toBe(202);
  expect((await rig.post(path, body({ top_k: 2.0 }))).body.created_at).toBe(first.body.created_at);
  expect((await rig.post(path, body({ top_k: 3 }))).body).toMatchObject({ code: 'request_id_conflict' });
});
