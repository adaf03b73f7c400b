/** Holding a call until a request has ended, asking for the result, cancelling, and the stop of the server. */
import { type Clock, systemClock } from '@remuda/core/lifecycle/clock';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Rig, setup } from './rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await setup();
});
afterAll(() => rig.close());

const BODY = { inputs: { x: [1, 2, 3] } };
const submit = (headers = {}) => rig.post('/v1/models/rows/requests', BODY, headers);

describe('Prefer: wait', () => {
  it('is answered with 202 and the record when the time is up', async () => {
    const answer = await submit({ prefer: 'respond-async, wait=1' });
    expect(answer.status).toBe(202);
    expect(answer.headers.get('preference-applied')).toBe('wait=1');
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(answer.body.status).toBe('queued');
  });

  it('is answered with 200 and the result as soon as the request has ended', async () => {
    const id = 'ends-while-held';
    const held = rig.post('/v1/models/rows/requests', { ...BODY, request_id: id }, { prefer: 'wait=100' });
    await until(async () => (await rig.call('GET', `/v1/requests/${id}`)).status === 200);
    await rig.call('DELETE', `/v1/requests/${id}`);
    const answer = await held;
    expect(answer.status).toBe(200);
    expect(answer.headers.get('preference-applied')).toBe('wait=60');
    expect(answer.body).toMatchObject({ request_id: id, status: 'cancelled', error: { code: 'cancelled' } });
    expect(rig.log.at(-1)).toMatchObject({ event: 'delivered', request_id: id, by: 'wait' });
  });
});

describe('a result', () => {
  it('that is not there yet is 202 with the record', async () => {
    const { body } = await submit();
    const answer = await rig.call('GET', `/v1/requests/${body.request_id}/result`);
    expect(answer.status).toBe(202);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(answer.body.request_id).toBe(body.request_id);
  });

  it('is binary where Accept asks for it', async () => {
    const { body } = await submit();
    await rig.call('DELETE', `/v1/requests/${body.request_id}`);
    const answer = await rig.call('GET', `/v1/requests/${body.request_id}/result`, {
      headers: { accept: 'application/json;q=0.5, application/octet-stream' },
    });
    expect(answer.headers.get('content-type')).toBe('application/octet-stream');
    const length = Number(answer.headers.get('inference-header-content-length'));
    const header = JSON.parse(answer.bytes.subarray(0, length).toString('utf8'));
    expect(header).toMatchObject({ request_id: body.request_id, status: 'cancelled', outputs: [] });
  });
});

describe('a cancellation', () => {
  it('takes a waiting request off its queue, once', async () => {
    const { body } = await submit();
    const first = await rig.call('DELETE', `/v1/requests/${body.request_id}`);
    expect(first.body).toMatchObject({ outcome: 'removed_from_queue', status: 'cancelled' });
    const again = await rig.call('DELETE', `/v1/requests/${body.request_id}`, {
      headers: { 'content-type': 'application/json' },
    });
    expect(again.body).toMatchObject({ status: 409, code: 'request_terminal' });
  });
});

describe('a server that stops', () => {
  let other: Rig;
  afterEach(() => other.close());

  it('answers open waits with 202 and lets calls finish', async () => {
    other = await setup();
    const sent = Date.now();
    const held = other.post(
      '/v1/models/rows/requests',
      { ...BODY, request_id: 'held' },
      { prefer: 'wait=60' },
    );
    await until(async () => (await other.call('GET', '/v1/requests/held')).status === 200);
    await other.api.stop();
    const answer = await held;
    expect(answer.status).toBe(202);
    expect(answer.body.request_id).toBe('held');
    expect(Date.now() - sent).toBeLessThan(60_000);
  });

  it('is not ready first, and still answers', async () => {
    const delayMs = 12_345;
    let delayIsOver = (): void => {};
    const clock: Clock = {
      now: systemClock.now,
      after(ms, callback) {
        if (ms !== delayMs) return systemClock.after(ms, callback);
        delayIsOver = callback;
        return () => {};
      },
    };
    other = await setup({ env: { REMUDA_API_DRAIN_DELAY_MS: String(delayMs) }, clock });
    const stopped = other.api.stop();
    const ready = await other.call('GET', '/readyz');
    expect(ready).toMatchObject({ status: 503, body: { status: 'draining' } });
    expect(ready.headers.get('connection')).toBe('close');
    expect((await other.post('/v1/models/rows/requests', BODY)).status).toBe(202);
    delayIsOver();
    await stopped;
    await expect(other.call('GET', '/livez')).rejects.toThrow();
  });
});

async function until(condition: () => Promise<boolean>): Promise<void> {
  await expect.poll(condition).toBe(true);
}
