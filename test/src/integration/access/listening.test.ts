/** Where an API may listen without keys, and over HTTPS: the rules at its start. */
import { request as httpRequest } from 'node:http';
import { request } from 'node:https';
import type { Clock } from '@remuda/core/lifecycle/clock';
import { systemClock } from '@remuda/core/lifecycle/clock';
import { startPrivateRedis } from '@remuda/infra/redis-launcher';
import { apiConfig } from '@remuda/producer-api';
import { afterEach, describe, expect, it } from 'vitest';
import { type Rig, type RigOptions, setup } from '../http/rig.js';
import { until } from '../requests/rig.js';
import { FIRST, type Pair, pairFiles, SECOND } from './certificates.js';
import { issue } from './keys.js';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function started(env: Record<string, string>, options: RigOptions = {}): Promise<Rig> {
  const rig = await setup({ ...options, env });
  closing.push(() => rig.close());
  return rig;
}

const said = ({ log }: Rig, text: RegExp) => log.filter(({ msg }) => text.test(String(msg))).length;
const OUTSIDE = '0.0.0.0';

describe('without a key an API', () => {
  it('on a loopback address lets everybody do everything', async () => {
    for (const host of ['127.0.0.1', 'localhost', '127.0.0.2']) {
      const rig = await started({ REMUDA_API_HOST: host });
      expect((await rig.call('GET', '/v1/admin/keys')).status).toBe(200);
    }
  });

  it('on a loopback address is no tool of pages that a browser of the machine shows', async () => {
    const rig = await started({});
    const { port } = new URL(rig.url);
    const ask = (headers: Record<string, string>) => statusOf(`${rig.url}/v1/models`, headers);
    for (const host of [
      `127.0.0.1:${port}`,
      'localhost',
      'LOCALHOST:1',
      'fleet.localhost',
      `[::1]:${port}`,
    ]) {
      expect([host, await ask({ host })]).toEqual([host, 200]);
    }
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      '127.0.0.1.evil.example',
    ]) {
      expect([host, await ask({ host })]).toEqual([host, 401]);
    }
    expect(await ask({ origin: `http://localhost:${port}` })).toBe(200);
    expect(await ask({ origin: 'https://evil.example' })).toBe(401);
    expect(await ask({ origin: 'null' })).toBe(401);
    const { auth } = await issue(rig);
    expect(await ask({ host: 'fleet.example', ...auth })).toBe(200);
  });

  it('on another address does not start, and says what to do', async () => {
    for (const auth of ['auto', 'keys']) {
      await expect(setup({ env: { REMUDA_API_HOST: OUTSIDE, REMUDA_API_AUTH: auth } })).rejects.toThrow(
        /0\.0\.0\.0.*no API key.*remuda keys create NAME --redis.*REMUDA_API_AUTH=open.*127\.0\.0\.1/,
      );
    }
  });

  it('on another address starts where open is said, with a warning', async () => {
    const rig = await started({ REMUDA_API_HOST: OUTSIDE, REMUDA_API_AUTH: 'open' });
    expect((await rig.call('GET', '/v1/models')).status).toBe(200);
    expect(said(rig, /everybody who reaches this API/)).toBe(1);
  });

  it('that asks for keys on a loopback address starts, refuses all, and takes the first key once it is made', async () => {
    const rig = await started({ REMUDA_API_AUTH: 'keys' });
    expect((await rig.call('GET', '/v1/models')).status).toBe(401);
    expect(said(rig, /until there is an API key/)).toBe(1);
    const { auth } = await issue(rig);
    expect((await rig.call('GET', '/v1/models', { headers: auth })).status).toBe(200);
  });
});

describe('with a key an API', () => {
  it('on another address asks for it; a key that is over opens nothing', async () => {
    const first = await started({});
    const env = { REMUDA_API_HOST: OUTSIDE, REMUDA_KEY_PREFIX: first.keys.space.prefix };
    const { auth, key } = await issue(first);
    const rig = await started(env);
    expect((await rig.call('GET', '/v1/models')).status).toBe(401);
    expect((await rig.call('GET', '/v1/models', { headers: auth })).status).toBe(200);
    await first.call('POST', `/v1/admin/keys/${key.id}:revoke`);
    await expect(setup({ env })).rejects.toThrow(/no API key/);
  });

  it('that is open takes it all the same, and then it is who it says; a wrong one is refused', async () => {
    const rig = await started({});
    const { auth } = await issue(rig, { tenant: 'acme' });
    const answer = await rig.post('/v1/models/rows/requests', { inputs: { x: [1, 2, 3] } }, auth);
    expect(answer.body).toMatchObject({ tenant: 'acme' });
    const wrong = { authorization: `Bearer rmd_abcdefghijkl_${'x'.repeat(43)}` };
    expect((await rig.call('GET', '/v1/models', { headers: wrong })).status).toBe(401);
    const foreign = { authorization: 'Basic YTpi' };
    expect((await rig.call('GET', '/v1/models', { headers: foreign })).status).toBe(200);
  });
});

it('with Redis away an API on another address starts, and lets nobody in', async () => {
  const redis = await startPrivateRedis({});
  closing.push(() => redis.stop());
  const first = await started({}, { url: redis.url });
  process.kill(redis.pid, 'SIGSTOP');
  try {
    const { ApiService } = await import('@remuda/producer-api');
    const { silentLogger: logger } = await import('@remuda/core/observability/logger');
    const config = apiConfig({
      REDIS_URL: redis.url,
      REMUDA_KEY_PREFIX: first.keys.space.prefix,
      REMUDA_API_HOST: OUTSIDE,
      REMUDA_API_PORT: '0',
    });
    const api = new ApiService({ config, logger });
    closing.push(() => api.stop());
    await api.start();
    expect((await fetch(`${api.url}/v1/models`)).status).toBe(401);
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
});

describe('over HTTPS', () => {
  it('answers are the same, with the header field that keeps browsers on it', async () => {
    const files = await pairFiles(FIRST);
    closing.push(files.remove);
    const rig = await started(files.env);
    expect(rig.url).toMatch(/^https:/);
    const { status, hsts } = await get(rig, FIRST);
    expect([status, hsts]).toEqual([200, 'max-age=15552000; includeSubDomains']);
  });

  it('a certificate that was renewed is used for new connections; one that fits no key is not', async () => {
    const files = await pairFiles(FIRST);
    closing.push(files.remove);
    const clock = handClock();
    const rig = await started(files.env, { clock });
    await files.write({ cert: SECOND.cert, key: FIRST.key });
    clock.pass();
    await until('the wrong pair is told', () => said(rig, /new certificate is not used/) > 0);
    expect((await get(rig, FIRST)).status).toBe(200);
    await files.write(SECOND);
    clock.pass();
    await until('the new pair is used', () => said(rig, /certificate has changed/) > 0);
    expect((await get(rig, SECOND)).status).toBe(200);
    await expect(get(rig, FIRST)).rejects.toThrow(/self-signed|unable to verify/);
  });

  it('needs two files that can be read and belong together', async () => {
    const files = await pairFiles({ cert: FIRST.cert, key: SECOND.key });
    closing.push(files.remove);
    await expect(setup({ env: files.env })).rejects.toThrow(/are no certificate and its key/);
    const missing = { ...files.env, REMUDA_API_TLS_KEY: '/nowhere/tls.key' };
    await expect(setup({ env: missing })).rejects.toThrow(/REMUDA_API_TLS_KEY: ENOENT.*\/nowhere\/tls\.key/);
    expect(() => apiConfig({ REMUDA_API_TLS_CERT: 'a.crt' })).toThrow(/REMUDA_API_TLS_KEY: HTTPS needs/);
  });
});

/** fetch would not let Host and Origin be what they are not. */
function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode as number);
    })
      .on('error', reject)
      .end();
  });
}

/** On a connection of its own that trusts that certificate alone. */
function get(rig: Rig, { cert }: Pair): Promise<{ status: number; hsts: unknown }> {
  return new Promise((resolve, reject) => {
    request(`${rig.url}/livez`, { ca: cert, agent: false }, (response) => {
      response.resume();
      resolve({
        status: response.statusCode as number,
        hsts: response.headers['strict-transport-security'],
      });
    })
      .on('error', reject)
      .end();
  });
}

/** Time goes on by itself, but for the pause between two looks at the certificate, which ends when the test says. */
function handClock(): Clock & { pass(): void } {
  const PAUSE_MS = 10_000;
  const waiting = new Set<() => void>();
  let passed = 0;
  const ring = (): void => {
    if (passed === 0 || waiting.size === 0) return;
    passed--;
    for (const callback of [...waiting]) {
      waiting.delete(callback);
      callback();
    }
  };
  return {
    now: () => Date.now(),
    after(ms, callback) {
      if (ms !== PAUSE_MS) return systemClock.after(ms, callback);
      waiting.add(callback);
      setImmediate(ring);
      return () => waiting.delete(callback);
    },
    pass() {
      passed++;
      ring();
    },
  };
}
