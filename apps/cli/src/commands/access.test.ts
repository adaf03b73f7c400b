/** `remuda keys`, `tenants` and `audit`: what they send, what they show, and where a key may come from. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { setup as setupFake } from '../fake-api.fixture.js';

const SECRET = `rmd_abcdefghijkl_${'s'.repeat(43)}`;
const KEY = {
  id: 'abcdefghijkl',
  name: 'billing',
  tenant: 'acme',
  scopes: ['submit', 'read'],
  rate_limit: { requests_per_second: 5, burst: 10 },
  hint: 'ssss',
  created_at: '2026-01-02T03:04:05.000Z',
  expires_at: null,
  rotated_at: null,
  old_secret_until: null,
  revoked_at: null,
  last_used_at: null,
};
const KEYS = '/v1/admin/keys';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function setup(...given: Parameters<typeof setupFake>) {
  const fake = await setupFake(...given);
  closing.push(fake.close);
  return fake;
}

describe('the key of a call', () => {
  const answers = { 'GET /v1/fleet': { body: { workers: [], at: KEY.created_at } } };

  it('is that of REMUDA_API_KEY, or none', async () => {
    const without = await setup(answers);
    expect(await without.run(['fleet'])).toBe(0);
    expect(without.sent[0]?.authorization).toBeUndefined();
    const withKey = await setup(answers, { REMUDA_API_KEY: SECRET });
    expect(await withKey.run(['fleet'])).toBe(0);
    expect(withKey.sent[0]?.authorization).toBe(`Bearer ${SECRET}`);
  });

  it('is read from a file where --key names one, which goes before', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'remuda-key-'));
    closing.push(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'key'), `${SECRET}\n`);
    const { run, sent } = await setup(answers, { REMUDA_API_KEY: 'rmd_other' });
    expect(await run(['fleet', '--key', `@${join(folder, 'key')}`])).toBe(0);
    expect(sent[0]?.authorization).toBe(`Bearer ${SECRET}`);
  });

  it('is not taken from the command line, where everybody sees it, nor shown when it cannot be one', async () => {
    const { run, sent, notes } = await setup(answers);
    expect(await run(['fleet', '--key', SECRET])).toBe(2);
    expect(notes()).toContain('A key on the command line is seen by everybody on this machine');
    const broken = await setup(answers, { REMUDA_API_KEY: 'rmd_ä secret' });
    expect(await broken.run(['fleet'])).toBe(2);
    expect(broken.notes()).toContain('REMUDA_API_KEY');
    expect(broken.notes()).not.toContain('secret');
    expect(sent).toEqual([]);
  });

  it('that is missing or wrong is told with how to give one', async () => {
    const problem = {
      type: 'urn:remuda:error:unauthorized',
      title: 'The call has no valid API key.',
      status: 401,
      detail: 'the API key is not known',
      code: 'unauthorized',
      retryable: false,
    };
    const { run, notes } = await setup({ 'GET /v1/fleet': { status: 401, body: problem } });
    expect(await run(['fleet'])).toBe(1);
    expect(notes()).toContain('give a key with REMUDA_API_KEY, or --key @FILE');
  });
});

describe('remuda keys create', () => {
  it('sends what was asked for, and gives the secret alone on standard output', async () => {
    const { run, sent, terminal, notes } = await setup({
      [`POST ${KEYS}`]: { status: 201, body: { key: KEY, secret: SECRET } },
    });
    const args = ['--tenant', 'acme', '--scopes', 'submit,read', '--expires', '2030-01-31', '--rate', '2.5'];
    expect(await run(['keys', 'create', 'billing', ...args])).toBe(0);
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({
      name: 'billing',
      tenant: 'acme',
      scopes: ['submit', 'read'],
      expires_at: '2030-01-31T00:00:00.000Z',
      rate_limit: { requests_per_second: 2.5, burst: 3 },
    });
    expect(sent[0]?.actor).toBeTruthy();
    expect(terminal.answers).toEqual([SECRET]);
    expect(notes()).toContain('key abcdefghijkl (billing) of tenant acme may submit, read');
    expect(notes()).not.toContain(SECRET);
  });

  it('leaves what is not named to the API', async () => {
    const { run, sent } = await setup({
      [`POST ${KEYS}`]: { status: 201, body: { key: KEY, secret: SECRET } },
    });
    expect(await run(['keys', 'create', 'billing', '--json'])).toBe(0);
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({ name: 'billing' });
  });

  it.each([
    [['--expires', 'tomorrow'], /Expected a time such as/],
    [['--rate', '0'], /Expected a number above 0/],
    [['--burst', '2'], /--burst needs --rate/],
    [['--redis'], /--redis needs REDIS_URL/],
  ])('refuses %j', async (args, message) => {
    const { run, notes, sent } = await setup();
    expect(await run(['keys', 'create', 'billing', ...args])).toBe(2);
    expect(notes()).toMatch(message);
    expect(sent).toEqual([]);
  });
});

it('remuda keys rotate sends the overlap in seconds, and shows the new secret once', async () => {
  const rotated = { ...KEY, old_secret_until: '2026-01-02T05:04:05.000Z' };
  const { run, sent, terminal, notes } = await setup({
    [`POST ${KEYS}/${KEY.id}:rotate`]: { body: { key: rotated, secret: SECRET } },
  });
  expect(await run(['keys', 'rotate', KEY.id, '--overlap', '2h'])).toBe(0);
  expect(JSON.parse(sent[0]?.body ?? '')).toEqual({ overlap_s: 7_200 });
  expect(terminal.answers).toEqual([SECRET]);
  expect(notes()).toContain('its old secret is taken until 2026-01-02T05:04:05.000Z');
});

it('remuda keys list, show and revoke', async () => {
  const revoked = {
    ...KEY,
    id: 'mnopqrstuvwx',
    name: 'old',
    rate_limit: null,
    revoked_at: '2026-02-01T00:00:00Z',
  };
  const { run, terminal } = await setup({
    [`GET ${KEYS}`]: { body: { keys: [KEY, revoked] } },
    [`GET ${KEYS}/${KEY.id}`]: { body: KEY },
    [`POST ${KEYS}/${KEY.id}:revoke`]: { body: revoked },
  });
  expect(await run(['keys', 'list'])).toBe(0);
  expect(await run(['keys', 'show', KEY.id])).toBe(0);
  expect(await run(['keys', 'revoke', KEY.id])).toBe(0);
  expect(terminal.answers).toMatchInlineSnapshot(`
    [
      "id            name     tenant  scopes                rate  state                      last used",
      "abcdefghijkl  billing  acme    submit,read  5/s, burst 10  valid                      never",
      "mnopqrstuvwx  old      acme    submit,read              -  revoked 2026-02-01 00:00Z  never",
      "key         abcdefghijkl (billing)",
      "tenant      acme",
      "scopes      submit, read",
      "rate        5/s, burst 10",
      "state       valid",
      "secret      ends in ssss",
      "created     2026-01-02 03:04Z",
      "last used   never",
      "key mnopqrstuvwx (old) is revoked",
    ]
  `);
});

it('remuda tenants set keeps what is not named', async () => {
  const limits = { max_waiting: 10, max_waiting_rows: null, max_waiting_bytes: null };
  const tenant = { name: 'acme', weight: 2, limits, updated_at: '2026-01-02T03:04:05.000Z' };
  const path = '/v1/admin/tenants/acme';
  const { run, sent, terminal } = await setup({
    [`GET ${path}`]: { body: tenant },
    [`PUT ${path}`]: {
      body: { ...tenant, limits: { ...limits, max_waiting: null, max_waiting_rows: 5_000 } },
    },
  });
  expect(await run(['tenants', 'set', 'acme', '--max-waiting', 'none', '--max-waiting-rows', '5000'])).toBe(
    0,
  );
  expect(JSON.parse(sent[1]?.body ?? '')).toEqual({
    weight: 2,
    limits: { max_waiting: null, max_waiting_rows: 5_000, max_waiting_bytes: null },
  });
  expect(terminal.answers).toMatchInlineSnapshot(`
    [
      "tenant  weight  most waiting   rows  bytes  set",
      "acme         2             -  5,000      -  2026-01-02 03:04Z",
    ]
  `);
});

it('remuda audit shows who did what, and how to get older ones', async () => {
  const entry = {
    id: '1700000000000-0',
    at: '2026-01-02T03:04:05.000Z',
    key_id: KEY.id,
    tenant: 'ops',
    address: '10.0.0.7',
    actor: 'ada',
    action: 'POST /v1/admin/models/:model:scale',
    target: { model: 'add' },
    status: 200,
    code: null,
    trace_id: 'a'.repeat(32),
  };
  const refused = { ...entry, key_id: null, actor: null, status: 422, code: 'invalid_request' };
  const { run, sent, terminal } = await setup({
    'GET /v1/admin/audit?limit=2&before=1800000000000-0': { body: { entries: [entry, refused] } },
  });
  expect(await run(['audit', '--limit', '2', '--before', '1800000000000-0'])).toBe(0);
  expect(sent).toHaveLength(1);
  expect(terminal.answers).toMatchInlineSnapshot(`
    [
      "time                  key           who              what                      to         outcome",
      "2026-01-02 03:04:05Z  abcdefghijkl  ada at 10.0.0.7  POST models/:model:scale  model=add  200",
      "2026-01-02 03:04:05Z  -             10.0.0.7         POST models/:model:scale  model=add  422 invalid_request",
      "older ones: remuda audit --limit 2 --before 1700000000000-0",
    ]
  `);
});

it('remuda keys and remuda tenants alone are their lists', async () => {
  const { run, sent } = await setup({
    [`GET ${KEYS}`]: { body: { keys: [KEY] } },
    'GET /v1/admin/tenants': { body: { tenants: [] } },
  });
  expect([await run(['keys']), await run(['tenants'])]).toEqual([0, 0]);
  expect(sent.map(({ path }) => path)).toEqual([KEYS, '/v1/admin/tenants']);
});
