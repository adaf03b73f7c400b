/**
 * Redis behind TLS, with a user of few rights, behind Sentinels and as a Cluster: the API, a worker and its runner as
 * the processes they are, a request of each size from its submission to its result, and no password in any log.
 */
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { tally } from '../support/api.js';
import { Fleet } from '../support/fleet.js';
import { Gate } from '../support/gate.js';
import { ask, startCluster, startTlsRedis, startWatched } from '../support/redis-servers.js';
import { testModels } from '../support/test-models.js';

const remuda = fileURLToPath(new URL('../../../apps/cli/bin/remuda.mjs', import.meta.url));
const PASSWORD = 'p@ss/w:rd,1';
const ESCAPED = encodeURIComponent(PASSWORD);
const PREFIX = 'fleet7';
/** The rule of docs/redis.md. */
const RIGHTS = ['~fleet7:*', '&fleet7:*', '+@all', '-@admin', '-@dangerous', '+info'];

let models: string;
let gate: Gate;
let fleet: Fleet | undefined;
let stops: (() => Promise<void>)[] = [];
beforeAll(async () => {
  models = await testModels();
  gate = new Gate(models);
});
afterEach(async () => {
  gate.open();
  await fleet?.stop();
  fleet = undefined;
  for (const stop of stops) await stop();
  stops = [];
});
afterAll(() => rmSync(models, { recursive: true, force: true }));

async function start(redisUrl: string, env: Record<string, string> = {}, workers = 1): Promise<Fleet> {
  const base = { REMUDA_WORKER_MODELS: 'gated,identity-fp32', REMUDA_KEY_PREFIX: PREFIX };
  fleet = await Fleet.start({ models, workers, redisUrl, env: { ...base, ...env } });
  return fleet;
}

const inputs = (first: number, width = 4) => {
  const data = Array.from({ length: width }, (_, i) => first + i);
  return { inputs: { x: { datatype: 'FP32', shape: [1, width], data } } };
};

/** Small inputs lie in the record, large ones and their outcomes under keys of their own. */
async function answersEverySize(of: Fleet): Promise<void> {
  for (const width of [4, 5_000]) {
    for (let i = 0; i < 20; i++) {
      const { status, body } = await of.api.submit('identity-fp32', inputs(i, width));
      expect({ status, detail: body }).toMatchObject({ status: 202 });
    }
  }
  expect(tally((await of.api.settle(120)).values())).toEqual({ succeeded: 40 });
  for (const [i, id] of [...of.api.accepted.keys()].entries())
    expect((await of.api.result(id)).outputs?.y).toMatchObject({
      data: expect.arrayContaining([i % 20, (i % 20) + 1]),
    });
  const log = of.logLines().join('\n');
  for (const secret of [PASSWORD, ESCAPED]) expect(log).not.toContain(secret);
}

/** What `remuda doctor` finds about Redis. */
async function doctor(redisUrl: string, env: Record<string, string> = {}): Promise<unknown[]> {
  const args = [remuda, 'doctor', '--json', '--url', 'http://127.0.0.1:1'];
  const { PATH = '', HOME = '' } = process.env;
  const options = { env: { PATH, HOME, REDIS_URL: redisUrl, ...env } };
  // It ends with 1: there is no API at that address.
  const out = await new Promise<string>((resolve) => {
    execFile(process.execPath, args, options, (_, stdout) => resolve(stdout));
  });
  const { findings } = JSON.parse(out) as { findings: { check: string; status: string }[] };
  return findings.filter(({ check }) => check === 'redis policy').map(({ status }) => status);
}

it('TLS: with an authority of our own and a certificate to show', async () => {
  const { port, certificates, stop } = await startTlsRedis();
  stops.push(stop);
  const { ca, clientCert, clientKey } = certificates;
  const files = {
    REMUDA_REDIS_TLS_CA: ca,
    REMUDA_REDIS_TLS_CERT: clientCert,
    REMUDA_REDIS_TLS_KEY: clientKey,
  };
  await answersEverySize(await start(`rediss://127.0.0.1:${port}`, files));
  expect(await doctor(`rediss://127.0.0.1:${port}`, files)).toEqual(['ok']);
});

it('a user who may touch the keys and channels of one prefix and nothing else', async () => {
  const { server, stop } = await startTlsRedis();
  stops.push(stop);
  await ask(server.port, 'ACL', 'SETUSER', 'remuda', 'on', `>${PASSWORD}`, 'resetkeys', ...RIGHTS);
  await ask(server.port, 'SET', 'not-ours', '1');
  await ask(server.port, 'ACL', 'LOG', 'RESET');
  await answersEverySize(await start(`redis://remuda:${ESCAPED}@127.0.0.1:${server.port}`));
  expect(await ask(server.port, 'ACL', 'LOG')).toEqual([]);
});

it('Sentinels: requests accepted before the master dies are answered after', async () => {
  const watched = await startWatched();
  stops.push(() => watched.stop());
  const { api } = await start(watched.url);
  await answersEverySize(fleet as Fleet);
  expect(await doctor(watched.url)).toEqual(['ok']);
  gate.close();
  for (let i = 0; i < 30; i++) expect((await api.submit('gated', inputs(i))).status).toBe(202);
  const [master, replica] = watched.servers;
  // What was accepted has reached the replica: what a failover may lose is another test's subject.
  await ask(master?.port as number, 'WAIT', '1', '0');
  await master?.kill9();
  await expect.poll(() => watched.master()).toBe(replica?.port);
  gate.open();
  // Inputs under keys of their own are read by another kind of connection, which has to find the new master too.
  await expect.poll(async () => (await api.submit('identity-fp32', inputs(0, 5_000))).status).toBe(202);
  const ended = await api.settle(120);
  expect(tally(ended.values())).toEqual({ succeeded: ended.size });
  expect(ended.size).toBeGreaterThanOrEqual(71);
});

it('a Cluster of three: requests are spread over its servers and each is answered', async () => {
  const cluster = await startCluster();
  stops.push(() => cluster.stop());
  await answersEverySize(await start(cluster.url, { REMUDA_RECORD_SHARDS: '16' }));
  expect(await doctor(cluster.url)).toEqual(['ok', 'ok', 'ok']);
  for (const { port } of cluster.nodes) {
    const keys = (await ask(port, 'KEYS', `${PREFIX}:{r*}:q:*`)) as string[];
    expect(keys.length).toBeGreaterThan(0);
  }
});
