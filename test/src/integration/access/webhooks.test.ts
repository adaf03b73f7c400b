/** Webhooks behind API keys: a tenant sees its own deliveries, and only an admin its endpoints and its secret. */
import { itemError } from '@remuda/core/errors';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Rig, setup } from '../http/rig.js';
import { ALL_SCOPES, issue, type TestKey } from './keys.js';

let rig: Rig;
let admin: TestKey;
let ada: TestKey;
let bob: TestKey;
beforeAll(async () => {
  rig = await setup({ env: { REMUDA_API_AUTH: 'keys' } });
  admin = await issue(rig, { scopes: ALL_SCOPES, tenant: 'ops' });
  ada = await issue(rig, { scopes: ['submit', 'read'], tenant: 'ada' });
  bob = await issue(rig, { scopes: ['submit', 'read'], tenant: 'bob' });
});
afterAll(() => rig.close());

const statusOf = async (method: string, path: string, key: TestKey) =>
  (await rig.call(method, path, { headers: key.auth })).status;

it('the deliveries of a request are seen by its tenant and by admins, and by nobody else', async () => {
  const sent = await rig.post(
    '/v1/models/rows/requests',
    { inputs: { x: [1, 2, 3] }, webhook: 'https://receiver.invalid/' },
    ada.auth,
  );
  const requestId = sent.body.request_id as string;
  await rig.store.end(requestId, 'cancelled', itemError('cancelled', 'over'));
  const log = `/v1/requests/${requestId}/webhooks`;
  const read = async (): Promise<{ id: string }[]> =>
    (await rig.call('GET', log, { headers: ada.auth })).body.deliveries as { id: string }[];
  await expect.poll(read).toHaveLength(1);
  const delivery = `/v1/webhooks/${(await read())[0]?.id}`;
  for (const path of [log, delivery]) {
    expect(await statusOf('GET', path, ada)).toBe(200);
    expect(await statusOf('GET', path, admin)).toBe(200);
    expect(await statusOf('GET', path, bob)).toBe(404);
  }
  expect(await statusOf('POST', `${delivery}/redeliver`, bob)).toBe(404);
  expect(await statusOf('POST', `${delivery}/redeliver`, ada)).toBe(202);
});

it.each([
  ['GET', '/v1/webhooks/secret'],
  ['POST', '/v1/webhooks/secret:rotate'],
  ['GET', '/v1/webhooks/endpoints'],
  ['GET', '/v1/webhooks/endpoints?tenant=ada'],
])('%s %s needs an admin', async (method, path) => {
  expect(await statusOf(method, path, ada)).toBe(403);
  expect(await statusOf(method, path, admin)).toBe(200);
});

it('what an admin does to endpoints and secrets stands in the audit log, without the secret', async () => {
  const added = await rig.post(
    '/v1/webhooks/endpoints?tenant=ada',
    { url: 'https://example.org/' },
    admin.auth,
  );
  expect(added.status).toBe(201);
  const rotated = await rig.post('/v1/webhooks/secret:rotate?tenant=ada', {}, admin.auth);
  const { body } = await rig.call('GET', '/v1/admin/audit', { headers: admin.auth });
  expect(body.entries).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        action: 'POST /v1/webhooks/endpoints',
        target: { tenant: 'ada', id: added.body.id },
      }),
      expect.objectContaining({ action: 'POST /v1/webhooks/secret:rotate', target: { tenant: 'ada' } }),
    ]),
  );
  expect(JSON.stringify(body)).not.toContain(rotated.body.secret);
});
