/** Webhooks over HTTP: endpoints, the signing secret, the log of a request, a delivery once more; and what is refused. */

import { itemError } from '@remuda/core/errors';
import {
  WebhookDelivery,
  WebhookDeliveryDetail,
  WebhookEndpoint,
  WebhookSigningSecret,
} from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Rig, setup } from './rig.js';

const ENDPOINTS = '/v1/webhooks/endpoints';
const SECRET = '/v1/webhooks/secret';

let rig: Rig;
beforeAll(async () => {
  rig = await setup({ env: { REMUDA_WEBHOOK_ALLOW: '127.0.0.1' } });
});
afterAll(() => rig.close());

/** A request with a webhook that has ended; its one delivery. */
async function endedWithWebhook(): Promise<{ requestId: string; delivery: WebhookDelivery }> {
  const sent = await rig.post('/v1/models/rows/requests', {
    inputs: { x: [1, 2, 3] },
    webhook: { url: 'http://127.0.0.1:9/hook' },
  });
  expect(sent.status).toBe(202);
  const requestId = sent.body.request_id as string;
  await rig.store.end(requestId, 'cancelled', itemError('cancelled', 'not wanted'));
  const log = async () =>
    (await rig.call('GET', `/v1/requests/${requestId}/webhooks`)).body.deliveries as unknown[];
  await expect.poll(log).toHaveLength(1);
  return { requestId, delivery: WebhookDelivery.parse((await log())[0]) };
}

describe('the log of a request', () => {
  it('has a delivery for each address, and knows when it is tried next', async () => {
    const { requestId, delivery } = await endedWithWebhook();
    expect(delivery).toMatchObject({
      ...{ type: 'request.cancelled', subject: requestId, state: 'pending', attempts: [] },
      ...{ url: 'http://127.0.0.1:9/hook', endpoint_id: null },
    });
    expect(delivery.next_attempt_at).not.toBeNull();
  });

  it('is empty for a request that nobody is told of, and 404 for one that is not known', async () => {
    const sent = await rig.post('/v1/models/rows/requests', { inputs: { x: [1, 2, 3] } });
    const empty = await rig.call('GET', `/v1/requests/${sent.body.request_id}/webhooks`);
    expect(empty).toMatchObject({ status: 200, body: { deliveries: [] } });
    const unknown = await rig.call('GET', '/v1/requests/nobody/webhooks');
    expect(unknown).toMatchObject({ status: 404, body: { code: 'request_not_found' } });
  });
});

describe('a delivery', () => {
  it('is shown with the body that is sent, and sent once more', async () => {
    const { requestId, delivery } = await endedWithWebhook();
    const shown = await rig.call('GET', `/v1/webhooks/${delivery.id}`);
    const { body } = WebhookDeliveryDetail.parse(shown.body);
    expect(JSON.parse(body).data.request.request_id).toBe(requestId);
    const again = await rig.call('POST', `/v1/webhooks/${delivery.id}/redeliver`);
    expect(again.status).toBe(202);
    expect(WebhookDelivery.parse(again.body).state).toBe('pending');
  });

  it.each([
    ['GET', '/v1/webhooks/msg_none'],
    ['POST', '/v1/webhooks/msg_none/redeliver'],
  ])('that is not known is 404: %s', async (method, path) => {
    expect(await rig.call(method, path)).toMatchObject({ status: 404, body: { code: 'webhook_not_found' } });
  });
});

describe('an endpoint', () => {
  it('is added, listed, shown and deleted', async () => {
    const added = await rig.post(ENDPOINTS, { url: 'https://example.org/hook', events: ['request.failed'] });
    expect(added.status).toBe(201);
    const endpoint = WebhookEndpoint.parse(added.body);
    const path = `${ENDPOINTS}/${endpoint.id}`;
    expect(added.headers.get('location')).toBe(path);
    expect((await rig.call('GET', path)).body).toEqual(endpoint);
    expect((await rig.call('GET', ENDPOINTS)).body.endpoints).toContainEqual(endpoint);
    expect((await rig.call('DELETE', path)).status).toBe(204);
    expect((await rig.call('GET', path)).status).toBe(404);
    expect((await rig.call('DELETE', path)).body.code).toBe('webhook_not_found');
  });

  it('belongs to its tenant', async () => {
    const { body } = await rig.post(`${ENDPOINTS}?tenant=acme`, { url: 'https://example.org/' });
    const path = `${ENDPOINTS}/${body.id}`;
    expect(body.tenant).toBe('acme');
    expect((await rig.call('GET', path)).status).toBe(404);
    expect((await rig.call('GET', `${path}?tenant=acme`)).status).toBe(200);
    expect((await rig.call('POST', `${path}:enable?tenant=acme`)).body.disabled).toBeNull();
  });

  it('more than twenty of a tenant are refused, however many come at one moment', async () => {
    const add = (_: unknown, at: number) =>
      rig.post(`${ENDPOINTS}?tenant=rush`, { url: `https://example.org/${at}` });
    const added = await Promise.all(Array.from({ length: 30 }, add));
    expect(added.filter(({ status }) => status === 201)).toHaveLength(20);
    expect(new Set(added.map(({ status }) => status))).toEqual(new Set([201, 429]));
  });

  it('more than twenty of a tenant are refused', async () => {
    for (let at = 0; at < 20; at++) {
      const { status } = await rig.post(`${ENDPOINTS}?tenant=many`, { url: `https://example.org/${at}` });
      expect(status).toBe(201);
    }
    const last = await rig.post(`${ENDPOINTS}?tenant=many`, { url: 'https://example.org/20' });
    expect(last).toMatchObject({ status: 429, body: { code: 'tenant_over_quota' } });
  });

  it.each([
    ['an address inside', { url: 'http://10.0.0.1/' }, 'webhook_refused', 'url'],
    ['the machine itself by name', { url: 'http://localhost/' }, 'webhook_refused', 'url'],
    ['no URL', { url: 'example.org' }, 'invalid_request', 'url'],
    ['nothing', {}, 'invalid_request', 'url'],
    [
      'an event that there is not',
      { url: 'https://example.org/', events: ['x'] },
      'invalid_request',
      'events[0]',
    ],
    ['an unknown key', { url: 'https://example.org/', secret: 'x' }, 'invalid_request', 'secret'],
  ])('is refused with code and path: %s', async (_, spec, code, path) => {
    const { status, body } = await rig.post(ENDPOINTS, spec);
    expect({ status, code: body.code, path: body.errors?.[0]?.path }).toEqual({ status: 422, code, path });
  });
});

describe('the signing secret', () => {
  it('is shown, the same each time, and kept by no cache', async () => {
    const first = await rig.call('GET', SECRET);
    expect(first.headers.get('cache-control')).toBe('no-store');
    expect(WebhookSigningSecret.parse(first.body).previous_until).toBeNull();
    expect((await rig.call('GET', SECRET)).body).toEqual(first.body);
  });

  it('is rotated, by default with a day of overlap', async () => {
    const before = await rig.call('GET', `${SECRET}?tenant=turning`);
    const after = await rig.call('POST', `${SECRET}:rotate?tenant=turning`);
    expect(after.status).toBe(200);
    expect(after.body.secret).not.toBe(before.body.secret);
    const until = Date.parse(after.body.previous_until as string);
    expect(until - Date.parse(after.body.created_at as string)).toBe(24 * 3_600_000);
    const leaked = await rig.post(`${SECRET}:rotate?tenant=turning`, { overlap_s: 0 });
    expect(leaked.body.previous_until).toBeNull();
  });

  it.each([-1, 1.5, 8 * 24 * 3600, 'long'])('is not rotated with an overlap of %s', async (overlap_s) => {
    const { status, body } = await rig.post(`${SECRET}:rotate`, { overlap_s });
    expect({ status, path: body.errors?.[0]?.path }).toEqual({ status: 422, path: 'overlap_s' });
  });
});

it('webhooks in a batch are checked each by itself', async () => {
  const { body } = await rig.post('/v1/requests:batch', {
    requests: [
      { model: 'rows', inputs: { x: [1, 2, 3] }, webhook: 'https://example.org/' },
      { model: 'rows', inputs: { x: [1, 2, 3] }, webhook: { url: 'http://[::1]/' } },
    ],
  });
  const results = body.results as {
    status: number;
    problem?: { code: string; errors: { path: string }[] };
  }[];
  expect(results.map(({ status }) => status)).toEqual([202, 422]);
  expect(results[1]?.problem).toMatchObject({
    code: 'webhook_refused',
    errors: [{ path: 'requests[1].webhook.url' }],
  });
});
