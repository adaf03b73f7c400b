/** Redis stopped under the API: refused soon, not ready, and well again by itself when Redis is back. */
import { type PrivateRedis, startPrivateRedis } from '@remuda/infra/redis-launcher';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Answer, type Rig, setup } from './rig.js';

/** Two seconds are promised; the rest is for a machine that has other work. */
const SOON_MS = 15_000;

let redis: PrivateRedis;
let rig: Rig;
beforeEach(async () => {
  redis = await startPrivateRedis({ appendonly: true });
  rig = await setup({ url: redis.url });
});
afterEach(async () => {
  await rig.close();
  await redis.stop();
});

const BODY = { inputs: { x: [1, 2, 3] } };

function form(): FormData {
  const form = new FormData();
  form.append('purpose', 'batch');
  form.append('file', new Blob(['x']), 'x');
  return form;
}

async function timed(call: Promise<Answer>): Promise<Answer & { ms: number }> {
  const started = Date.now();
  return { ...(await call), ms: Date.now() - started };
}

it('every call is 503 with Retry-After while it is away, and taken again when it is back', async () => {
  expect((await rig.post('/v1/models/rows/requests', BODY)).status).toBe(202);
  await redis.kill9();
  const calls = [
    timed(rig.post('/v1/models/rows/requests', BODY)),
    timed(rig.post('/v1/requests:batch', { requests: [{ model: 'rows', ...BODY }] })),
    timed(rig.call('GET', '/v1/requests')),
    timed(rig.call('GET', '/v1/requests/req_abc/result')),
    timed(rig.call('DELETE', '/v1/requests/req_abc')),
    timed(rig.call('POST', '/v1/files', { body: form() })),
    timed(rig.call('GET', '/v1/files/file-0000000000000000')),
  ];
  for (const answer of await Promise.all(calls)) {
    expect(answer.body).toMatchObject({ status: 503, code: 'store_unavailable', retryable: true });
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(answer.ms).toBeLessThan(SOON_MS);
  }
  expect((await rig.call('GET', '/readyz')).status).toBe(503);
  expect((await rig.call('GET', '/livez')).status).toBe(200);
  await redis.restart();
  await untilReady();
  expect((await rig.post('/v1/models/rows/requests', BODY)).status).toBe(202);
});

it('that hangs is 503 soon, too', async () => {
  expect((await rig.post('/v1/models/rows/requests', BODY)).status).toBe(202);
  process.kill(redis.pid, 'SIGSTOP');
  try {
    const answer = await timed(rig.post('/v1/models/rows/requests', BODY));
    expect(answer.body).toMatchObject({ status: 503, code: 'store_unavailable' });
    expect(answer.ms).toBeLessThan(SOON_MS);
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
  await untilReady();
});

it('that goes away while a call is held does not make an accepted request look refused', async () => {
  const held = rig.post('/v1/models/rows/requests', { ...BODY, request_id: 'held' }, { prefer: 'wait=60' });
  await untilThere('held');
  await redis.kill9();
  const answer = await held;
  expect(answer).toMatchObject({ status: 202, body: { request_id: 'held' } });
});

async function untilThere(id: string): Promise<void> {
  while ((await rig.call('GET', `/v1/requests/${id}`)).status !== 200) await pause();
}

async function untilReady(): Promise<void> {
  while ((await rig.call('GET', '/readyz')).status !== 200) await pause();
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50));
}
