/** Calls with and without API keys over real HTTP: who is let in, to what, and in what words the others are refused. */
import { itemError } from '@remuda/core/errors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Rig, setup } from '../http/rig.js';
import { ALL_SCOPES, issue, type TestKey } from './keys.js';

let rig: Rig;
let admin: TestKey;
let ada: TestKey;
let bob: TestKey;
beforeAll(async () => {
  rig = await setup({ env: { REMUDA_API_AUTH: 'keys' } });
  admin = await issue(rig, { scopes: ALL_SCOPES, tenant: 'ops' });
  ada = await issue(rig, { tenant: 'ada' });
  bob = await issue(rig, { tenant: 'bob' });
});
afterAll(() => rig.close());

const ROWS = '/v1/models/rows/requests';
const BODY = { inputs: { x: [1, 2, 3] } };
const get = (path: string, key?: TestKey) => rig.call('GET', path, { headers: key?.auth });

async function submitted(key: TestKey, body: Record<string, unknown> = {}): Promise<string> {
  const answer = await rig.post(ROWS, { ...BODY, ...body }, key.auth);
  expect(answer.status).toBe(202);
  return answer.body.request_id as string;
}

describe('a call without a valid key', () => {
  const wrong = `rmd_abcdefghijkl_${'x'.repeat(43)}`;
  const cases: [what: string, header: string | undefined, challenge: string][] = [
    ['has none', undefined, 'Bearer realm="remuda"'],
    ['has another scheme', 'Basic YTpi', 'Bearer realm="remuda", error="invalid_token"'],
    ['has no text', 'Bearer', 'Bearer realm="remuda", error="invalid_token"'],
    ['has a text of another form', 'Bearer sk-123', 'Bearer realm="remuda", error="invalid_token"'],
    ['names a key that is not there', `Bearer ${wrong}`, 'Bearer realm="remuda", error="invalid_token"'],
  ];
  it.each(cases)('that %s is 401 with WWW-Authenticate', async (_what, authorization, challenge) => {
    const answer = await rig.call('GET', '/v1/models', { headers: authorization ? { authorization } : {} });
    expect(answer.body).toMatchObject({ status: 401, code: 'unauthorized', retryable: false });
    expect(answer.headers.get('www-authenticate')).toBe(challenge);
  });

  it('that has the id of a key and another secret hears the same as of a key that is not there', async () => {
    const near = ada.secret.slice(0, -1) + (ada.secret.endsWith('a') ? 'b' : 'a');
    const ask = (text: string) =>
      rig.call('GET', '/v1/models', { headers: { authorization: `Bearer ${text}` } });
    const [unknown, other] = await Promise.all([ask(wrong), ask(near)]);
    expect(other.status).toBe(401);
    expect(other.body.detail).toBe(unknown.body.detail);
  });

  it('stores nothing', async () => {
    const before = await rig.store.countOpen();
    expect((await rig.post(ROWS, BODY)).status).toBe(401);
    expect((await rig.post('/v1/requests:batch', { requests: [{ model: 'rows', ...BODY }] })).status).toBe(
      401,
    );
    expect(await rig.store.countOpen()).toBe(before);
  });

  it('is answered where nothing is given away: health, documentation, and that a path is none', async () => {
    for (const path of ['/livez', '/readyz', '/openapi.json', '/docs', '/docs/static/index.html']) {
      expect([path, (await get(path)).status]).toEqual([path, 200]);
    }
    expect((await get('/nowhere')).status).toBe(404);
    expect((await rig.call('DELETE', '/v1/models')).status).toBe(405);
    expect((await get('/metrics')).status).toBe(401);
    expect((await get('/metrics', ada)).status).toBe(200);
  });
});

describe('a scope', () => {
  it('that is missing is 403 and named', async () => {
    const reader = await issue(rig, { scopes: ['read'] });
    const sender = await issue(rig, { scopes: ['submit'] });
    const refused = [
      [await rig.post(ROWS, BODY, reader.auth), 'submit'],
      [await rig.call('DELETE', '/v1/requests/req_a', { headers: reader.auth }), 'submit'],
      [await get('/v1/requests', sender), 'read'],
      [await get('/v1/admin/models', ada), 'admin'],
      [await get('/v1/admin/keys', ada), 'admin'],
      [await rig.post('/v1/admin/models/rows:scale', { instances: 2 }, ada.auth), 'admin'],
    ] as const;
    for (const [{ body, headers }, scope] of refused) {
      expect(body).toMatchObject({ status: 403, code: 'forbidden' });
      expect(body.detail).toContain(`the scope "${scope}"`);
      expect(headers.get('www-authenticate')).toContain(`error="insufficient_scope", scope="${scope}"`);
    }
  });

  it('to submit alone gives no result, even where the call asks to be held for it', async () => {
    const sender = await issue(rig, { scopes: ['submit'] });
    const answer = await rig.post(ROWS, BODY, { ...sender.auth, prefer: 'wait=60' });
    expect(answer.status).toBe(202);
    expect(answer.headers.get('preference-applied')).toBeNull();
  });

  it('of every route is declared, and is as it was', async () => {
    const { routeScopes } = rig.api;
    const undeclared = [...routeScopes].filter(([, scope]) => scope === undefined).map(([route]) => route);
    expect(undeclared).toEqual([]);
    const open = [...routeScopes].filter(([, scope]) => scope === 'public').map(([route]) => route);
    expect(
      open.filter((route) => !/^(GET|HEAD) (\/docs(\/.*)?|\/openapi.json|\/livez|\/readyz)$/.test(route)),
    ).toEqual([]);
    const admins = [...routeScopes.keys()].filter((route) => route.includes('/v1/admin/'));
    expect(admins.length).toBeGreaterThan(10);
    expect(admins.filter((route) => routeScopes.get(route) !== 'admin')).toEqual([]);
  });
});

describe('a tenant', () => {
  it('gets its own requests, and of those of others hears exactly what it hears of none', async () => {
    const id = await submitted(ada);
    expect((await get(`/v1/requests/${id}`, ada)).body).toMatchObject({ request_id: id, tenant: 'ada' });
    const calls: [method: string, path: (of: string) => string][] = [
      ['GET', (of) => `/v1/requests/${of}`],
      ['GET', (of) => `/v1/requests/${of}?wait=60`],
      ['GET', (of) => `/v1/requests/${of}/result`],
      ['DELETE', (of) => `/v1/requests/${of}`],
    ];
    for (const [method, path] of calls) {
      const unknown = `req_${'0'.repeat(id.length - 4)}`;
      const foreign = await rig.call(method, path(id), { headers: bob.auth });
      const none = await rig.call(method, path(unknown), { headers: bob.auth });
      const without = ({ body, status, headers }: typeof none) => {
        const text = JSON.stringify({ ...body, trace_id: '', x: headers.get('x-request-id') !== null });
        return [status, text.replaceAll(unknown, 'ID').replaceAll(id, 'ID')];
      };
      expect(foreign.status).toBe(404);
      expect(without(foreign)).toEqual(without(none));
    }
    expect((await get(`/v1/requests/${id}`, admin)).body).toMatchObject({ request_id: id, status: 'queued' });
    const own = await rig.call('DELETE', `/v1/requests/${id}`, { headers: ada.auth });
    expect(own.body).toMatchObject({ status: 'cancelled' });
  });

  it('with the request_id of another is told of a conflict and nothing else, however alike the two are', async () => {
    const id = `shared-${Date.now()}`;
    await submitted(ada, { request_id: id });
    const again = await rig.post(ROWS, { ...BODY, request_id: id }, ada.auth);
    expect([again.status, again.body.tenant]).toEqual([202, 'ada']);
    const other = await rig.post(ROWS, { ...BODY, request_id: id }, bob.auth);
    expect(other.body).toMatchObject({ status: 409, code: 'request_id_conflict' });
    expect(JSON.stringify(other.body)).not.toContain('ada');
    const batch = await rig.post(
      '/v1/requests:batch',
      { requests: [{ model: 'rows', ...BODY, request_id: id }] },
      bob.auth,
    );
    expect(batch.body).toMatchObject({ accepted: 0, results: [{ status: 409 }] });
    expect((await get(`/v1/requests/${id}`, ada)).body).toMatchObject({ status: 'queued' });
  });

  it('lists its own, page by page, with cursors that name nobody else', async () => {
    const [eve, mallory] = [await issue(rig, { tenant: 'eve' }), await issue(rig, { tenant: 'mallory' })];
    const mine: string[] = [];
    for (let i = 0; i < 5; i++) {
      await submitted(mallory, { request_id: `secret-${i}-${Date.now()}` });
      mine.unshift(await submitted(eve));
    }
    await submitted(mallory);
    const listed: string[] = [];
    let cursor = '';
    do {
      const { body } = await get(`/v1/requests?limit=2${cursor && `&cursor=${cursor}`}`, eve);
      for (const record of body.requests as { request_id: string; tenant: string }[]) {
        expect(record.tenant).toBe('eve');
        listed.push(record.request_id);
      }
      cursor = (body.next_cursor as string | null) ?? '';
      expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toMatch(/secret|req_/);
    } while (cursor !== '');
    expect(listed).toEqual(mine);
  });

  it('may not use a cursor of another, nor ask for the requests of another', async () => {
    const { body } = await get('/v1/requests?limit=1', ada);
    const stolen = await get(`/v1/requests?cursor=${body.next_cursor}`, bob);
    expect(stolen.body).toMatchObject({ status: 422, code: 'invalid_request' });
    expect((await get('/v1/requests?tenant=ada', bob)).body).toMatchObject({
      status: 403,
      code: 'forbidden',
    });
    expect((await get('/v1/requests?tenant=ada', ada)).status).toBe(200);
    const seen = (await get('/v1/requests?tenant=ada&limit=200', admin)).body.requests as {
      tenant: string;
    }[];
    expect(new Set(seen.map(({ tenant }) => tenant))).toEqual(new Set(['ada']));
  });
});

describe('dead letters', () => {
  async function givenUp(key: TestKey): Promise<string> {
    const id = await submitted(key);
    expect(await rig.store.end(id, 'failed', itemError('inference_failed', 'it does not run'))).toBeTruthy();
    await expect.poll(async () => (await get(`/v1/dead-letters/${id}`, key)).status).toBe(200);
    return id;
  }

  it('are listed without a word of those of others: not their number, not their ids in cursors', async () => {
    const [eve, mallory] = [await issue(rig, { tenant: 'eve-2' }), await issue(rig, { tenant: 'mallory-2' })];
    const mine = [await givenUp(eve)];
    await givenUp(mallory);
    mine.unshift(await givenUp(eve));
    const first = await get('/v1/dead-letters?limit=1', eve);
    expect(first.body).toMatchObject({ total: null, dead_letters: [{ request_id: mine[0] }] });
    const cursor = first.body.next_cursor as string;
    expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toMatch(/req_/);
    const second = await get(`/v1/dead-letters?limit=1&cursor=${cursor}`, eve);
    expect(second.body).toMatchObject({ dead_letters: [{ request_id: mine[1] }] });
    const stolen = await get(`/v1/dead-letters?cursor=${cursor}`, mallory);
    expect(stolen.body).toMatchObject({ status: 422, errors: [{ path: 'query.cursor' }] });
    expect((await get('/v1/dead-letters', admin)).body.total).toBeGreaterThanOrEqual(3);
  });

  it('of others, and ids that are none, are refused one by one where many are to run again', async () => {
    const id = await givenUp(ada);
    const answer = await rig.post('/v1/dead-letters:redrive', { choose: { ids: [id, 'nobody'] } }, bob.auth);
    expect(answer.body).toMatchObject({
      redriven: [],
      refused: [
        { request_id: id, code: 'dead_letter_not_found' },
        { request_id: 'nobody', code: 'dead_letter_not_found' },
      ],
    });
  });
});

describe('a key that is revoked while its call is held', () => {
  it('hears no more of the request: 401, no result, and the end of the stream', async () => {
    const key = await issue(rig, { tenant: 'ada' });
    const id = await submitted(key);
    const held = get(`/v1/requests/${id}?wait=60`, key);
    const result = rig.post(ROWS, BODY, { ...key.auth, prefer: 'wait=60' });
    const stream = rig.call('GET', `/v1/requests/${id}/events`, { headers: key.auth });
    await expect.poll(async () => (await get('/metrics', admin)).bytes.toString()).toMatch(/wait_holders 3/);
    const { body } = await get('/v1/requests?tenant=ada&limit=1', admin);
    const [{ request_id: other }] = body.requests as [{ request_id: string }];
    const revoked = await rig.post(`/v1/admin/keys/${key.key.id}:revoke`, {}, admin.auth);
    expect(revoked.status).toBe(200);
    for (const one of [id, other])
      await rig.store.end(one, 'cancelled', itemError('cancelled', 'not wanted'));
    expect((await held).body).toMatchObject({ status: 401, code: 'unauthorized' });
    expect(await result).toMatchObject({ status: 202, body: { request_id: other, status: 'queued' } });
    const told = (await stream).bytes.toString();
    expect(told).toContain('event: state');
    expect(told).not.toContain('event: ended');
    expect(JSON.stringify(rig.log)).not.toContain('broken off');
  });
});

describe('a key with a rate', () => {
  it('is held to it over all its calls: RateLimit fields, then 429 with Retry-After', async () => {
    const slow = await issue(rig, { rate_limit: { requests_per_second: 0.01, burst: 2 } });
    const [first, second, third] = [
      await get('/v1/models', slow),
      await rig.post(ROWS, BODY, slow.auth),
      await get('/v1/models', slow),
    ];
    expect([first?.status, second?.status, third?.status]).toEqual([200, 202, 429]);
    expect(first?.headers.get('ratelimit-policy')).toBe('"key";q=2;w=200');
    expect(first?.headers.get('ratelimit')).toMatch(/^"key";r=1;t=100$/);
    expect(third?.headers.get('ratelimit')).toMatch(/^"key";r=0;t=\d+$/);
    expect(third?.body).toMatchObject({ code: 'rate_limited', retryable: true });
    expect(Number(third?.headers.get('retry-after'))).toBeGreaterThan(10);
    expect((await get('/v1/models', ada)).status).toBe(200);
  });

  it('that has none asks Redis nothing about it', async () => {
    expect((await get('/livez', ada)).headers.get('ratelimit')).toBeNull();
    expect((await get('/v1/models', ada)).headers.get('ratelimit')).toBeNull();
    expect(await rig.redis.exists(rig.keys.apiKeyRate(ada.key.id))).toBe(0);
  });
});

it('a key that has expired is refused, and told so', async () => {
  const brief = await issue(rig, { expires_at: new Date(Date.now() + 3_600_000).toISOString() });
  const stored = JSON.parse((await rig.redis.hget(rig.keys.apiKeys(), brief.key.id)) as string);
  const past = new Date(Date.now() - 1_000).toISOString();
  await rig.redis.hset(rig.keys.apiKeys(), brief.key.id, JSON.stringify({ ...stored, expires_at: past }));
  const { body } = await get('/v1/models', brief);
  expect(body).toMatchObject({ status: 401, code: 'unauthorized' });
  expect(body.detail).toContain(`expired at ${past}`);
});

it('a key that was revoked where the clock is ahead is refused at once', async () => {
  const gone = await issue(rig);
  const stored = JSON.parse((await rig.redis.hget(rig.keys.apiKeys(), gone.key.id)) as string);
  const ahead = new Date(Date.now() + 60_000).toISOString();
  await rig.redis.hset(rig.keys.apiKeys(), gone.key.id, JSON.stringify({ ...stored, revoked_at: ahead }));
  expect((await get('/v1/models', gone)).body).toMatchObject({ status: 401, code: 'unauthorized' });
});

it('no secret stands in Redis, in the log or in an answer but the first', async () => {
  const dump = JSON.stringify([await rig.redis.hgetall(rig.keys.apiKeys()), rig.log]);
  const listed = JSON.stringify((await get('/v1/admin/keys', admin)).body);
  for (const { secret } of [admin, ada, bob]) {
    const [, , bytes] = secret.split('_') as [string, string, string];
    expect(dump).not.toContain(bytes);
    expect(listed).not.toContain(bytes);
  }
});

it('every answer has the header fields that keep browsers out of it; the documentation still works', async () => {
  for (const path of ['/v1/models', '/nowhere', '/livez']) {
    const { headers } = await get(path, ada);
    expect(headers.get('content-security-policy')).toBe("default-src 'none';frame-ancestors 'none'");
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('access-control-allow-origin')).toBeNull();
  }
  const page = await get('/docs/');
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
  expect((await get('/docs/static/swagger-ui-bundle.js')).status).toBe(200);
});
