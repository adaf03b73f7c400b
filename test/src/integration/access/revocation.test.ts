/**
 * What happens to a key at one API process holds at all of them: two APIs on one Redis, with the connection on which they
 * hear of changes alive, killed, and with Redis away.
 */
import { type PrivateRedis, startPrivateRedis } from '@remuda/infra/redis-launcher';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Rig, setup } from '../http/rig.js';
import { until } from '../requests/rig.js';
import { ALL_SCOPES, bearing, issue, type TestKey } from './keys.js';

let redis: PrivateRedis;
let one: Rig;
let two: Rig;
let admin: TestKey;
let key: TestKey;
beforeEach(async () => {
  redis = await startPrivateRedis({ appendonly: true });
  one = await setup({ url: redis.url, env: { REMUDA_API_AUTH: 'keys' } });
  const env = { REMUDA_API_AUTH: 'keys', REMUDA_KEY_PREFIX: one.keys.space.prefix };
  two = await setup({ url: redis.url, env });
  admin = await issue(one, { scopes: ALL_SCOPES });
  key = await issue(one);
});
afterEach(async () => {
  await two.close();
  await one.close();
  await redis.stop();
});

const status = async (rig: Rig, { auth }: Pick<TestKey, 'auth'>): Promise<number> =>
  (await rig.call('GET', '/v1/models', { headers: auth })).status;

const act = (rig: Rig, verb: string, body: unknown = {}) =>
  rig.post(`/v1/admin/keys/${key.key.id}:${verb}`, body, admin.auth);

/** Commands that Redis has run by name, since the server began. */
async function hgetCalls(): Promise<number> {
  const stats = await one.redis.info('commandstats');
  return Number(/cmdstat_hget:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

it('a key that was seen before costs no question to Redis', async () => {
  await until('the subscription answers', async () => {
    await status(two, key);
    const before = await hgetCalls();
    await status(two, key);
    return (await hgetCalls()) === before;
  });
  const before = await hgetCalls();
  for (let i = 0; i < 20; i++) expect(await status(two, key)).toBe(200);
  expect(await hgetCalls()).toBe(before);
});

it('revoked at one, a key is refused by the other from the answer on', async () => {
  for (let round = 0; round < 10; round++) {
    key = await issue(one);
    expect(await status(two, key)).toBe(200);
    expect(await status(two, key)).toBe(200);
    expect((await act(one, 'revoke')).body).toMatchObject({ id: key.key.id, revoked_at: expect.any(String) });
    expect([await status(one, key), await status(two, key)]).toEqual([401, 401]);
  }
});

it('the same with the connections just killed on which changes are heard', async () => {
  expect([await status(one, key), await status(two, key)]).toEqual([200, 200]);
  const heard = await subscribers();
  expect(heard.length).toBe(2);
  for (const id of heard) await one.redis.call('CLIENT', 'KILL', 'ID', id);
  expect((await act(one, 'revoke')).status).toBe(200);
  expect([await status(one, key), await status(two, key)]).toEqual([401, 401]);
});

it('what was missed while a connection was away is not believed when it is back', async () => {
  expect(await status(two, key)).toBe(200);
  for (const id of await subscribers()) await one.redis.call('CLIENT', 'KILL', 'ID', id);
  // Past the API, and with no message: as if it had come while nobody listened.
  const stored = JSON.parse((await one.redis.hget(one.keys.apiKeys(), key.key.id)) as string);
  const revoked = { ...stored, revoked_at: new Date().toISOString() };
  await one.redis.hset(one.keys.apiKeys(), key.key.id, JSON.stringify(revoked));
  await until('both listen again', async () => (await subscribers()).length === 2);
  expect([await status(one, key), await status(two, key)]).toEqual([401, 401]);
});

it('rotated, the old secret is refused at once, or taken for as long as was said', async () => {
  expect(await status(two, key)).toBe(200);
  const second = bearing((await act(one, 'rotate')).body as never);
  expect(second.key).toMatchObject({ id: key.key.id, old_secret_until: null });
  expect([await status(two, key), await status(two, second)]).toEqual([401, 200]);
  const third = bearing((await act(two, 'rotate', { overlap_s: 3_600 })).body as never);
  expect(Date.parse(third.key.old_secret_until as string)).toBeGreaterThan(Date.now() + 3_000_000);
  expect([await status(one, key), await status(one, second), await status(one, third)]).toEqual([
    401, 200, 200,
  ]);
  const stored = JSON.parse((await one.redis.hget(one.keys.apiKeys(), key.key.id)) as string);
  const over = { ...stored, old_secret_until: new Date(Date.now() - 1).toISOString() };
  await one.redis.hset(one.keys.apiKeys(), key.key.id, JSON.stringify(over));
  await one.redis.publish(one.keys.apiKeysChanged(), key.key.id);
  await until('the end of the overlap is seen', async () => (await status(one, second)) === 401);
  expect(await status(one, third)).toBe(200);
});

it('without Redis nobody is let in, known or not: 503, and again when it is back', async () => {
  expect(await status(two, key)).toBe(200);
  await redis.kill9();
  const unknown = { auth: { authorization: `Bearer rmd_abcdefghijkl_${'x'.repeat(43)}` } };
  expect([await status(two, key), await status(two, unknown)]).toEqual([503, 503]);
  expect((await two.call('GET', '/v1/models')).status).toBe(401);
  await redis.restart();
  await until('the key is taken again', async () => (await status(two, key)) === 200);
  expect(await status(two, unknown)).toBe(401);
});

/** Client ids of the connections that hear of changes of keys. */
async function subscribers(): Promise<string[]> {
  const clients = String(await one.redis.call('CLIENT', 'LIST'));
  return clients
    .split('\n')
    .filter((line) => line.includes('name=remuda-subscriber ') && !/ sub=0 /.test(line))
    .map((line) => /^id=(\d+)/.exec(line)?.[1] as string);
}
