/** What a caller sees of a full queue: refused before its body is read, told when to come back and what is left. */
import { request as httpRequest } from 'node:http';
import { apiConfig } from '@remuda/producer-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CallInit, type Rig, setup } from './rig.js';

let rig: Rig;
const PATH = '/v1/models/rows/requests';
const GOOD = { inputs: { x: [[1, 2, 3]] } };

beforeAll(async () => {
  rig = await setup({ env: { REMUDA_API_MAX_QUEUE_DEPTH: '2' } });
  for (let i = 0; i < 2; i++) expect((await rig.post(PATH, GOOD)).status).toBe(202);
});
afterAll(() => rig?.close());

/**
 * The code of the refusal. A server that has not asked for a second how full the queue is reads the body; then it knows
 * again, and the next call is refused unread.
 */
async function codeWhileFull(init: CallInit): Promise<string> {
  for (let tries = 0; ; tries++) {
    expect((await rig.post(PATH, GOOD)).status).toBe(429);
    const { body } = await rig.call('POST', PATH, init);
    if (body.code === 'over_capacity' || tries === 50) return body.code;
  }
}

describe('a call for a model whose queue is full', () => {
  it('is 429 with the time to come back, the limit and what is left of it', async () => {
    const { status, headers, body } = await rig.post(PATH, GOOD);
    expect([status, body.code, body.retryable]).toEqual([429, 'over_capacity', true]);
    expect(body['violated-policies']).toEqual(['queue-requests']);
    const seconds = Number(headers.get('retry-after'));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(120);
    expect(headers.get('ratelimit-policy')).toBe('"queue-requests";q=2;qu="concurrent-requests"');
    expect(headers.get('ratelimit')).toBe(`"queue-requests";r=0;t=${seconds}`);
  });

  it('is refused before anything of its body is looked at', async () => {
    const broken = { body: '{"inputs": oops', headers: { 'content-type': 'application/json' } };
    expect(await codeWhileFull(broken)).toBe('over_capacity');
    const large = {
      body: Buffer.alloc(4 * 1024 * 1024),
      headers: { 'content-type': 'application/octet-stream' },
    };
    expect(await codeWhileFull(large)).toBe('over_capacity');
  });

  it('is answered before its body has come', async () => {
    expect((await rig.post(PATH, GOOD)).status).toBe(429);
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const call = httpRequest(`${rig.url}${PATH}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-length': 1_000_000 },
      });
      call.on('response', (response) => {
        resolve(response.statusCode);
        call.destroy();
      });
      call.on('error', reject);
      call.flushHeaders();
    });
    expect(status).toBe(429);
  });

  it('is counted by its code', async () => {
    const { bytes } = await rig.call('GET', '/metrics');
    expect(bytes.toString()).toMatch(/remuda_refused_total\{code="over_capacity"\} [1-9]/);
  });

  it('leaves others alone: other models, and reading', async () => {
    expect((await rig.call('GET', '/v1/requests')).status).toBe(200);
    const other = await rig.post('/v1/models/text/requests', { inputs: { words: [['a']] } });
    expect(other.body.code).not.toBe('over_capacity');
  });

  it('in a batch each is refused on its own', async () => {
    const requests = [{ model: 'rows', ...GOOD }];
    const { status, body } = await rig.post('/v1/requests:batch', { requests });
    expect([status, body.refused]).toEqual([200, 1]);
  });
});

it('an acceptance tells what is left of the limit that is nearest', async () => {
  const roomy = await setup({ env: { REMUDA_API_MAX_QUEUE_DEPTH: '10', REMUDA_API_MAX_QUEUE_ROWS: '100' } });
  const { status, headers } = await roomy.post(PATH, GOOD);
  expect(status).toBe(202);
  expect(headers.get('ratelimit')).toBe('"queue-requests";r=9');
  expect(headers.get('ratelimit-policy')).toBe('"queue-requests";q=10;qu="concurrent-requests"');
  const figures = (await roomy.call('GET', '/metrics')).bytes.toString();
  expect(figures).toContain(
    'remuda_unended{model="rows",device_class="cpu",lane="interactive",unit="requests"} 1',
  );
  expect(figures).toContain('remuda_unended_limit{unit="rows"} 100');
  expect(figures).toContain('remuda_tenant_unended{tenant="default",unit="rows"} 1');
  await roomy.close();
});

describe('a limit that cannot be', () => {
  it.each([
    ['REMUDA_API_MAX_QUEUE_DEPTH', '0'],
    ['REMUDA_API_MAX_QUEUE_ROWS', '-1'],
    ['REMUDA_API_MAX_QUEUE_BYTES', '2GB'],
    ['REMUDA_API_MAX_QUEUE_WAIT_S', 'soon'],
  ])('%s=%s is refused with the name and what it is for', (name, value) => {
    expect(() => apiConfig({ [name]: value })).toThrow(new RegExp(`${name}: .*received "${value}"\\. \\w`));
  });
});
