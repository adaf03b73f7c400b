/** What can be read: lists with filters and cursors, models, the fleet, health, metrics, and the documentation. */
import type { RequestRecord } from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Rig, setup } from './rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await setup();
  for (let i = 0; i < 5; i++) {
    await rig.post('/v1/models/rows/requests', {
      request_id: `r${i}`,
      inputs: { x: [1, 2, 3] },
      metadata: { tags: { even: String(i % 2 === 0) } },
    });
  }
  await rig.post('/v1/models/text/requests', { request_id: 't0', inputs: { words: 'a' } });
  await rig.call('DELETE', '/v1/requests/r0');
});
afterAll(() => rig.close());

async function list(query: string) {
  const { status, body } = await rig.call('GET', `/v1/requests?${query}`);
  expect(status).toBe(200);
  return {
    ids: (body.requests as RequestRecord[]).map((record) => record.request_id),
    next: body.next_cursor,
  };
}

describe('the list of requests', () => {
  it('is newest first, page by page', async () => {
    const first = await list('limit=4');
    expect(first.ids).toEqual(['t0', 'r4', 'r3', 'r2']);
    const second = await list(`limit=4&cursor=${first.next}`);
    expect(second).toEqual({ ids: ['r1', 'r0'], next: null });
  });

  it('can be narrowed', async () => {
    expect((await list('model=text')).ids).toEqual(['t0']);
    expect((await list('status=cancelled')).ids).toEqual(['r0']);
    expect((await list('tag=even:true')).ids).toEqual(['r4', 'r2', 'r0']);
    expect((await list('since=2100-01-01T00:00:00Z')).ids).toEqual([]);
    expect((await list('until=2001-01-01T00:00:00Z')).ids).toEqual([]);
  });
});

it('models are listed, with their queues and what they take', async () => {
  const { body } = await rig.call('GET', '/v1/models');
  const models = body.models as { name: string; queues: { lane: string; waiting: number }[] }[];
  expect(models.map(({ name }) => name)).toEqual(['pair', 'picture', 'rows', 'text', 'tuned']);
  const waiting = models
    .find(({ name }) => name === 'rows')
    ?.queues.find(({ lane }) => lane === 'interactive');
  expect(waiting?.waiting).toBe(4);
  const one = await rig.call('GET', '/v1/models/rows');
  expect(one.body).toMatchObject({ name: 'rows', signature: { inputs: [{ name: 'x', shape: ['N', 3] }] } });
});

it('fleet, health and metrics are told', async () => {
  expect((await rig.call('GET', '/v1/fleet')).body).toMatchObject({ workers: [] });
  expect(await rig.call('GET', '/livez')).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect(await rig.call('GET', '/readyz')).toMatchObject({
    status: 200,
    body: { checks: { redis: { ok: true } } },
  });
  const metrics = (await rig.call('GET', '/metrics')).bytes.toString('utf8');
  expect(metrics).toContain('remuda_accepted_total{model="rows",device_class="cpu",lane="interactive"} 5');
  expect(metrics).toMatch(
    /remuda_http_requests_total\{method="POST",route="\/v1\/models\/:model\/requests",status="202"\} 6/,
  );
  expect(metrics).toMatch(
    /remuda_queue_depth\{model="rows",device_class="cpu",lane="interactive",state="waiting"\} 4/,
  );
});

describe('the documentation', () => {
  type Document = Record<string, unknown> & { paths: Record<string, Record<string, Operation>> };
  interface Operation {
    requestBody?: { content: Record<string, unknown> };
    responses: Record<string, { content: Record<string, unknown> }>;
    parameters?: { name: string }[];
  }
  let document: Document;
  beforeAll(async () => {
    document = (await rig.call('GET', '/openapi.json')).body as unknown as Document;
  });

  it('is OpenAPI 3.1 and has every route', () => {
    expect(document.openapi).toBe('3.1.0');
    const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(routes.sort()).toMatchSnapshot();
  });

  it('resolves every reference', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
      ([, path]) => path as string,
    );
    expect(references.length).toBeGreaterThan(20);
    for (const reference of new Set(references)) {
      const target = reference
        .replace('#/', '')
        .split('/')
        .reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], document);
      expect(target, reference).toBeTypeOf('object');
    }
  });

  it('names every kind of body and of answer', () => {
    const submit = document.paths['/v1/models/{model}/requests']?.post;
    expect(Object.keys(submit?.requestBody?.content ?? {})).toEqual([
      'application/json',
      'application/octet-stream',
      'multipart/form-data',
      'image/*',
    ]);
    expect(submit?.requestBody?.content['application/json']).toEqual({
      schema: { $ref: '#/components/schemas/InferenceRequestInput' },
    });
    expect(Object.keys(submit?.responses[200]?.content ?? {})).toEqual([
      'application/json',
      'application/octet-stream',
    ]);
    expect(Object.keys(submit?.responses[422]?.content ?? {})).toEqual(['application/problem+json']);
    expect(submit?.parameters?.map(({ name }) => name)).toContain('prefer');
  });

  it('has a page', async () => {
    const { status, headers } = await rig.call('GET', '/docs/');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toContain('text/html');
  });
});
