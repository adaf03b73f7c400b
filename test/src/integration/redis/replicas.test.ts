/** A 202 that waits for replicas, with a real one: what it promises, and what is left of a request that was refused. */
import { type PrivateRedis, startPrivateRedis } from '@remuda/infra/redis-launcher';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ask, until } from '../../support/redis-servers.js';
import { type Rig, setup } from '../http/rig.js';

let master: PrivateRedis;
let replica: PrivateRedis;
let rig: Rig;
beforeEach(async () => {
  master = await startPrivateRedis();
  replica = await startPrivateRedis({ args: ['--replicaof', `127.0.0.1 ${master.port}`] });
  await until('the replica follows', async () =>
    /link_status:up/.test(String(await ask(replica.port, 'INFO'))),
  );
  rig = await setup({
    url: master.url,
    env: { REMUDA_API_WAIT_REPLICAS: '1', REMUDA_API_WAIT_REPLICAS_MS: '1000' },
  });
});
afterEach(async () => {
  await rig.close();
  process.kill(replica.pid, 'SIGCONT');
  await replica.stop();
  await master.stop();
});

const BODY = { inputs: { x: [1, 2, 3] } };
const PATH = '/v1/models/rows/requests';

it('what was accepted is on the replica the moment it is answered: the master dies and nothing is lost', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => rig.post(PATH, BODY)));
  await master.kill9();
  for (const { status, body } of answers) {
    expect(status).toBe(202);
    expect(await ask(replica.port, 'EXISTS', rig.keys.record(String(body.request_id)))).toBe(1);
    const job = `${rig.keys.space.prefix}:queue:{rows/cpu/interactive}:${body.request_id}`;
    expect(await ask(replica.port, 'EXISTS', job)).toBe(1);
  }
});

it('without the replica nothing is accepted, and nothing stays of what was refused', async () => {
  process.kill(replica.pid, 'SIGSTOP');
  const { status, body, headers } = await rig.post(PATH, { request_id: 'refused', ...BODY });
  expect(status).toBe(503);
  expect(body).toMatchObject({
    code: 'store_unavailable',
    detail: expect.stringMatching(/^0 of 1 replicas/),
  });
  expect(headers.get('retry-after')).toMatch(/^\d+$/);
  await expect.poll(async () => (await rig.call('GET', '/v1/requests/refused')).status).toBe(404);
  const queue = `${rig.keys.space.prefix}:queue:{rows/cpu/interactive}`;
  await expect.poll(() => rig.redis.zcard(`${queue}:prioritized`)).toBe(0);
});

it('reading goes on meanwhile, and accepting when the replica is back', async () => {
  const { body } = await rig.post(PATH, BODY);
  process.kill(replica.pid, 'SIGSTOP');
  const refused = rig.post(PATH, BODY);
  expect((await rig.call('GET', `/v1/requests/${body.request_id}`)).status).toBe(200);
  expect((await refused).status).toBe(503);
  process.kill(replica.pid, 'SIGCONT');
  await expect.poll(async () => (await rig.post(PATH, BODY)).status).toBe(202);
});

it('is not for a Cluster, and says so at the start', async () => {
  const { apiConfig } = await import('@remuda/producer-api');
  const env = { REDIS_URL: 'redis+cluster://a,b', REMUDA_API_WAIT_REPLICAS: '1' };
  expect(() => apiConfig(env)).toThrow(/REMUDA_API_WAIT_REPLICAS is not for a Cluster/);
});
