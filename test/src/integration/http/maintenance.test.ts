/** An API keeps the promises of time by itself: no worker has ever lived in these tests. */
import { afterEach, expect, it } from 'vitest';
import { type Rig, setup } from './rig.js';

let rig: Rig;
afterEach(() => rig.close());

const BODY = { inputs: { x: [1, 2, 3] }, metadata: { timeout_ms: 1 } };

const statusOf = async (id: unknown): Promise<unknown> =>
  (await rig.call('GET', `/v1/requests/${id}`)).body.status;

it('takes the role at its start', async () => {
  rig = await setup();
  expect((await rig.call('GET', '/readyz')).status).toBe(200);
  expect(await rig.redis.exists(rig.keys.sweeperLease())).toBe(1);
});

it('ends a request whose deadline passes where no worker lives', async () => {
  rig = await setup();
  const { status, body } = await rig.post('/v1/models/rows/requests', BODY);
  expect(status).toBe(202);
  await expect.poll(() => statusOf(body.request_id)).toBe('expired');
});

it('leaves that to others where the setting says so', async () => {
  rig = await setup({ env: { REMUDA_API_MAINTENANCE: 'false' } });
  // The lease is asked for at the start, on the connection that answers this call.
  expect((await rig.call('GET', '/readyz')).status).toBe(200);
  expect(await rig.redis.exists(rig.keys.sweeperLease())).toBe(0);
});
