/**
 * A full queue through the real processes. While no run of the model ends, two API processes together refuse what is
 * over the limit; when it goes on, all that was accepted ends and nothing is counted any more, also where an API was
 * killed in the middle of its submissions.
 */
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis, type Redis } from '@remuda/core/store/redis';
import { RequestStore } from '@remuda/core/store/request-store';
import { isTerminal } from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Api } from '../support/api.js';
import { Fleet } from '../support/fleet.js';
import { Gate } from '../support/gate.js';
import { testModels } from '../support/test-models.js';

const LIMIT = 20;
/** What both API processes may have under way when the limit is reached. */
const AT_ONCE = 10;
const PATIENCE_MS = 120_000;

let models: string;
let fleet: Fleet;
let gate: Gate;
let redis: Redis;
let store: RequestStore;

beforeAll(async () => {
  models = await testModels();
  gate = new Gate(models);
  fleet = await Fleet.start({ models, env: { REMUDA_API_MAX_QUEUE_DEPTH: String(LIMIT) } });
  redis = connectRedis({ url: fleet.redis.url, role: 'runner', name: 'test', onError: () => {} });
  store = new RequestStore(redis, new Keys({ prefix: 'remuda', shards: 1 }));
});
afterAll(async () => {
  if (redis) closeRedis(redis);
  await fleet?.stop();
  rmSync(models, { recursive: true, force: true });
});

const request = (id?: string) => ({
  ...(id === undefined ? {} : { request_id: id }),
  inputs: { x: { datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] } },
});

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; !(await holds()); await sleep(50)) {
    if (Date.now() > end) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
  }
}

const nothingIsCounted = async (): Promise<boolean> => (await store.allUsage()).size === 0;

describe('a queue that is full', () => {
  it('is full for two API processes together; all that was accepted ends, and nothing stays counted', async () => {
    const second = new Api();
    second.url = (await fleet.addApi()).url;
    const apis = [fleet.api, second];
    await gate.closedWhile(async () => {
      for (let round = 0; round < 10; round++) {
        const calls = Array.from({ length: AT_ONCE }, (_, i) =>
          (apis[i % 2] as Api).submit('gated', request()),
        );
        for (const { status, headers, body } of await Promise.all(calls)) {
          if (status === 202) continue;
          expect([status, body.code]).toEqual([429, 'over_capacity']);
          expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
          expect(headers.get('ratelimit')).toMatch(/^"queue-requests";r=0;t=\d+$/);
          expect(headers.get('ratelimit-policy')).toContain(`q=${LIMIT}`);
        }
      }
      const accepted = apis.reduce((sum, { accepted }) => sum + accepted.size, 0);
      expect(accepted).toBeGreaterThanOrEqual(LIMIT);
      expect(accepted).toBeLessThanOrEqual(LIMIT + AT_ONCE);
    });
    for (const api of apis) expect(new Set((await api.settle(60)).values())).toEqual(new Set(['succeeded']));
    await until('nothing is counted', nothingIsCounted);
    await until('it takes more', async () => (await fleet.api.submit('gated', request())).status === 202);
    await until('nothing is counted', nothingIsCounted);
  });

  it('counts nothing in the end of what an API was told that was killed in the middle', async () => {
    const doomed = await fleet.addApi({ REMUDA_API_MAX_QUEUE_DEPTH: '100000' });
    const api = new Api();
    api.url = doomed.url;
    let answered = 0;
    // Ids of the caller's own: record and job leave one after the other.
    const sending = Array.from({ length: 8 }, async (_, sender) => {
      for (let i = 0; ; i++) {
        await api.submit('gated', request(`k${sender}_${i}`));
        answered++;
      }
    });
    const broken = Promise.allSettled(sending);
    await gate.closedWhile(async () => {
      await until('some are accepted', async () => answered > 100);
      doomed.child.kill('SIGKILL');
      await doomed.ended;
      await broken;
      const usage = await store.allUsage();
      expect(usage.get('p:gated/cpu/interactive')?.requests).toBe(await store.countOpen());
    });
    await until('all have ended', async () => (await store.countOpen()) === 0);
    const statuses = (await store.read([...api.accepted])).map((record) => record?.status);
    expect(statuses.every((status) => status !== undefined && isTerminal(status))).toBe(true);
    expect(await nothingIsCounted()).toBe(true);
  });
});
