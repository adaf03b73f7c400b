/** The admin API of keys, tenants and the audit log: what is made, what is refused, and what is written down of it. */
import type { ApiKey, AuditEntry, IssuedKey, Tenant } from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Rig, setup } from '../http/rig.js';
import { until } from '../requests/rig.js';
import { ALL_SCOPES, bearing, issue, type TestKey } from './keys.js';

let rig: Rig;
let admin: TestKey;
beforeAll(async () => {
  rig = await setup({ env: { REMUDA_API_AUTH: 'keys' } });
  admin = await issue(rig, { scopes: ALL_SCOPES, tenant: 'ops' });
});
afterAll(() => rig.close());

const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  rig.call(method, path, {
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    headers: {
      ...admin.auth,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
  });
const as = <Body>({ body }: Answer): Body => body as unknown as Body;
const audit = async (query = '') =>
  as<{ entries: AuditEntry[] }>(await send('GET', `/v1/admin/audit${query}`)).entries;

describe('an API key', () => {
  it('is made with what was asked for, its secret shown once and kept by no cache', async () => {
    const wanted = {
      name: 'billing, nightly',
      tenant: 'acme',
      scopes: ['read'],
      expires_at: '2099-01-01T00:00:00Z',
      rate_limit: { requests_per_second: 5, burst: 10 },
    };
    const answer = await send('POST', '/v1/admin/keys', wanted);
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const { key, secret } = as<IssuedKey>(answer);
    expect(key).toMatchObject({ ...wanted, hint: secret.slice(-4), revoked_at: null, last_used_at: null });
    expect(answer.headers.get('location')).toBe(`/v1/admin/keys/${key.id}`);
    expect(as<ApiKey>(await send('GET', `/v1/admin/keys/${key.id}`))).toEqual(key);
    const { keys } = as<{ keys: ApiKey[] }>(await send('GET', '/v1/admin/keys?tenant=acme'));
    expect(keys).toEqual([key]);
    const call = await rig.call('GET', '/v1/models', { headers: bearing({ key, secret }).auth });
    expect(call.status).toBe(200);
  });

  it('that nothing is said of may send and read for the default tenant', async () => {
    const { key } = as<IssuedKey>(await send('POST', '/v1/admin/keys', { name: 'plain' }));
    expect(key).toMatchObject({
      tenant: 'default',
      scopes: ['submit', 'read'],
      expires_at: null,
      rate_limit: null,
    });
  });

  it('says when it was last used, once that was written', async () => {
    const used = await issue(rig, { name: 'used' });
    await rig.call('GET', '/v1/models', { headers: used.auth });
    await rig.api.writeKeyUses();
    const { last_used_at } = as<ApiKey>(await send('GET', `/v1/admin/keys/${used.key.id}`));
    expect(Date.parse(last_used_at as string)).toBeGreaterThan(Date.now() - 60_000);
  });

  it('that was revoked stays in the list, is revoked once, and gets no new secret', async () => {
    const { key } = await issue(rig, { name: 'gone' });
    const first = as<ApiKey>(await send('POST', `/v1/admin/keys/${key.id}:revoke`));
    expect(as<ApiKey>(await send('POST', `/v1/admin/keys/${key.id}:revoke`))).toEqual(first);
    expect(await send('POST', `/v1/admin/keys/${key.id}:rotate`)).toMatchObject({
      status: 404,
      body: { code: 'key_not_found' },
    });
    const { keys } = as<{ keys: ApiKey[] }>(await send('GET', '/v1/admin/keys'));
    expect(keys.find(({ id }) => id === key.id)).toEqual(first);
  });

  const bad: [what: string, body: unknown, path: string][] = [
    ['no name', {}, 'name'],
    ['a name with a line break', { name: 'a\nb' }, 'name'],
    ['an unknown scope', { name: 'a', scopes: ['submit', 'root'] }, 'scopes[1]'],
    ['no scope', { name: 'a', scopes: [] }, 'scopes'],
    ['a scope twice', { name: 'a', scopes: ['read', 'read'] }, 'scopes'],
    ['a tenant of a wrong form', { name: 'a', tenant: 'Acme Inc' }, 'tenant'],
    ['an end that is no time', { name: 'a', expires_at: 'tomorrow' }, 'expires_at'],
    ['an end in the past', { name: 'a', expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [
      'a rate of nothing',
      { name: 'a', rate_limit: { requests_per_second: 0, burst: 1 } },
      'rate_limit.requests_per_second',
    ],
    ['a rate without a burst', { name: 'a', rate_limit: { requests_per_second: 1 } }, 'rate_limit.burst'],
    ['a secret of its own', { name: 'a', secret: 'x' }, 'secret'],
  ];
  it.each(bad)('with %s is refused with the path', async (_what, body, path) => {
    const answer = await send('POST', '/v1/admin/keys', body);
    expect(answer.body).toMatchObject({ status: 422, code: 'invalid_request' });
    expect(answer.body.errors?.[0]?.path).toBe(path);
  });

  it('that is not there, or cannot be, is 404; a rotation is checked too', async () => {
    for (const id of ['abcdefghijkl', 'x', 'ABC-', 'a'.repeat(150)]) {
      expect((await send('GET', `/v1/admin/keys/${id}`)).body).toMatchObject({ code: 'key_not_found' });
      expect((await send('POST', `/v1/admin/keys/${id}:revoke`)).body).toMatchObject({
        code: 'key_not_found',
      });
    }
    const rotate = `/v1/admin/keys/${admin.key.id}:rotate`;
    expect((await send('POST', rotate, { overlap_s: -1 })).body.errors?.[0]?.path).toBe('overlap_s');
    expect((await send('POST', rotate, { expires_at: '2020-01-01T00:00:00Z' })).body.errors?.[0]?.path).toBe(
      'expires_at',
    );
  });
});

describe('a tenant', () => {
  it('is set as a whole, and listed with those that have a key', async () => {
    await issue(rig, { tenant: 'only-keys' });
    const limits = { max_waiting: 10, max_waiting_rows: null, max_waiting_bytes: 1_000_000 };
    const set = as<Tenant>(await send('PUT', '/v1/admin/tenants/big', { weight: 3, limits }));
    expect(set).toMatchObject({ name: 'big', weight: 3, limits });
    expect(as<Tenant>(await send('GET', '/v1/admin/tenants/big'))).toEqual(set);
    const { tenants } = as<{ tenants: Tenant[] }>(await send('GET', '/v1/admin/tenants'));
    expect(tenants.find(({ name }) => name === 'only-keys')).toMatchObject({ weight: 1, updated_at: null });
    const again = as<Tenant>(await send('PUT', '/v1/admin/tenants/big', {}));
    expect(again).toMatchObject({ weight: 1, limits: { max_waiting: null } });
  });

  it('that is not known is 404; of a wrong form or share, 422 with the path', async () => {
    expect((await send('GET', '/v1/admin/tenants/nobody')).body).toMatchObject({ code: 'tenant_not_found' });
    const bad: [name: string, body: unknown, path: string][] = [
      ['Not%20A%20Name', {}, 'path.tenant'],
      ['ok', { weight: 0 }, 'weight'],
      ['ok', { limits: { max_waiting: -1 } }, 'limits.max_waiting'],
      ['ok', { limits: { waiting: 1 } }, 'limits.waiting'],
    ];
    for (const [name, body, path] of bad) {
      const answer = await send('PUT', `/v1/admin/tenants/${name}`, body);
      expect(answer.body).toMatchObject({ status: 422, code: 'invalid_request' });
      expect(answer.body.errors?.[0]?.path).toBe(path);
    }
  });
});

describe('the audit log', () => {
  it('has who, what, when and how it ended, of keys, tenants and models alike', async () => {
    const { key } = as<IssuedKey>(
      await send('POST', '/v1/admin/keys', { name: 'watched' }, { 'remuda-actor': 'ada' }),
    );
    await send('POST', '/v1/admin/models/rows:scale', { instances: 2 });
    await send('POST', '/v1/admin/models/rows:scale', { instances: -2 });
    const [failed, scaled, created] = await audit('?limit=3');
    const by = { key_id: admin.key.id, tenant: 'ops', address: '127.0.0.1' };
    expect(created).toMatchObject({
      ...by,
      actor: 'ada',
      action: 'POST /v1/admin/keys',
      target: { id: key.id, tenant: 'default', scopes: 'submit,read' },
      status: 201,
      code: null,
    });
    expect(scaled).toMatchObject({
      ...by,
      actor: null,
      action: 'POST /v1/admin/models/:model:scale',
      target: { model: 'rows' },
      status: 200,
    });
    expect(failed).toMatchObject({ status: 422, code: 'invalid_request' });
    await until('it is in the log too', () =>
      rig.log.some(({ event, target }) => event === 'audit' && (target as { id?: string }).id === key.id),
    );
  });

  it('holds no reads, no calls of who may not, and no secret', async () => {
    const before = await audit('?limit=500');
    await send('GET', '/v1/admin/keys');
    const plain = await issue(rig);
    await rig.post('/v1/admin/keys', { name: 'x' }, plain.auth);
    await rig.post('/v1/admin/keys', { name: 'x' });
    expect(await audit('?limit=500')).toEqual(before);
    const { secret } = as<IssuedKey>(await send('POST', `/v1/admin/keys/${plain.key.id}:rotate`));
    const text = JSON.stringify(await audit('?limit=500'));
    expect(text).toContain(':rotate');
    expect(text).not.toContain(secret.slice(17));
  });

  it('is read page by page, and refuses what is no place in it', async () => {
    const all = await audit('?limit=4');
    const older = await audit(`?limit=2&before=${all[1]?.id}`);
    expect(older).toEqual(all.slice(2, 4));
    expect((await send('GET', '/v1/admin/audit?before=x')).body.errors?.[0]?.path).toBe('query.before');
  });

  it('has a bounded length', async () => {
    const { AuditLog } = await import('@remuda/core/access/audit-log');
    const { silentLogger } = await import('@remuda/core/observability/logger');
    const log = new AuditLog({ redis: rig.redis, keys: rig.keys, logger: silentLogger });
    const [entry] = await audit('?limit=1');
    const { id: _, ...record } = entry as AuditEntry;
    for (let i = 0; i < 11; i++) await Promise.all(Array.from({ length: 1_000 }, () => log.write(record)));
    const length = await rig.redis.xlen(rig.keys.audit());
    expect(length).toBeGreaterThanOrEqual(10_000);
    expect(length).toBeLessThan(10_200);
  });
});

it('an edit of a model names the key beside who says that they make it', async () => {
  await send('POST', '/v1/admin/models/rows:scale', { instances: 3 }, { 'remuda-actor': 'ada' });
  const { body } = await send('GET', '/v1/admin/models/rows/history?limit=1');
  expect((body.events as { who: string }[])[0]?.who).toBe(`ada (key ${admin.key.id})`);
});

it('before the very first place of the audit log there is nothing, and that is no error', async () => {
  for (const before of ['0-0', '00-0']) {
    expect(await send('GET', `/v1/admin/audit?before=${before}`)).toMatchObject({
      status: 200,
      body: { entries: [] },
    });
  }
});
