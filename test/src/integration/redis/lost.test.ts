/** What Redis confirmed and does not have any more: the API that answered notices, tells and counts. */
import { type PrivateRedis, startPrivateRedis } from '@remuda/infra/redis-launcher';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Rig, setup } from '../http/rig.js';

let redis: PrivateRedis;
let rig: Rig;
beforeEach(async () => {
  redis = await startPrivateRedis();
  rig = await setup({ url: redis.url });
});
afterEach(async () => {
  await rig.close();
  await redis.stop();
});

const BODY = { inputs: { x: [1, 2, 3] } };
const submit = async (metadata?: object): Promise<string> => {
  const { status, body } = await rig.post('/v1/models/rows/requests', { ...BODY, metadata });
  expect(status).toBe(202);
  return String(body.request_id);
};
const lines = () => rig.log.filter(({ msg }) => String(msg).startsWith('Redis came back without'));
const counted = async (): Promise<string | undefined> =>
  /^remuda_lost_total (\d+)$/m.exec((await rig.call('GET', '/metrics')).bytes.toString())?.[1];

it('requests that are gone after the connection was lost are named and counted once', async () => {
  const ids = [await submit(), await submit(), await submit()];
  // As after a failover to a replica that had not got them yet.
  await rig.redis.unlink(rig.keys.record(ids[0] as string), rig.keys.record(ids[2] as string));
  await rig.redis.call('CLIENT', 'KILL', 'TYPE', 'normal');
  await expect.poll(lines).toHaveLength(1);
  expect(lines()[0]).toMatchObject({ level: 'error', lost: 2, request_ids: [ids[0], ids[2]] });
  expect(await counted()).toBe('2');
  await rig.redis.call('CLIENT', 'KILL', 'TYPE', 'normal');
  // Accepted behind what is looked up when the connection is back.
  await expect.poll(async () => (await rig.post('/v1/models/rows/requests', BODY)).status).toBe(202);
  expect(lines()).toHaveLength(1);
});

it('one that may rightly be gone by then is not missed', async () => {
  await rig.redis.unlink(rig.keys.record(await submit({ result_ttl_s: 1 })));
  const later = await submit();
  await rig.redis.unlink(rig.keys.record(later));
  await rig.redis.call('CLIENT', 'KILL', 'TYPE', 'normal');
  await expect.poll(lines).toHaveLength(1);
  expect(lines()[0]).toMatchObject({ lost: 1, request_ids: [later] });
});
