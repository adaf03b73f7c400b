/**
 * Faults to survive, each with the ledger: every id that was accepted has exactly one terminal record, nothing is
 * lost, no terminal state changes.
 */
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestStatus } from '@remuda/schemas';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { tally } from '../support/api.js';
import { Fleet } from '../support/fleet.js';
import { testModels } from '../support/test-models.js';

/** Short, so that the jobs of a worker that is gone are free again soon. */
const LOCK_MS = 2_000;
/** Until a change of a worker has gone through its heartbeat and the API's view of the fleet. */
const HEARD_OF = { timeout: 8_000, interval: 200 };

let models: string;
let fleet: Fleet | undefined;

beforeAll(async () => {
  models = await testModels();
});
afterEach(async () => {
  await fleet?.stop();
  fleet = undefined;
});
afterAll(() => rmSync(models, { recursive: true, force: true }));

async function start(workers = 1, env: Record<string, string> = {}): Promise<Fleet> {
  fleet = await Fleet.start({
    models,
    workers,
    env: {
      REMUDA_WORKER_MODELS: 'slow,identity-fp32,crash-on-mark',
      REMUDA_WORKER_LOCK_MS: String(LOCK_MS),
      ...env,
    },
  });
  return fleet;
}

const row = (first: number) => ({ datatype: 'FP32', shape: [1, 4], data: [first, 1, 2, 3] });

/** A request of the slow model: about `ms` of native work. */
function slow(ms: number, first = 1) {
  return {
    inputs: { x: row(first), iterations: { datatype: 'INT64', shape: [], data: Math.round(ms * 125) } },
  };
}

async function submitMany(to: Fleet, model: string, requests: unknown[]): Promise<string[]> {
  const answers = await Promise.all(requests.map((request) => to.api.submit(model, request)));
  return answers.map(({ status, body }) => {
    expect(status).toBe(202);
    return body.request_id;
  });
}

/** A backlog of the slow model: so many requests of about `ms` each. */
function submitSlow(count: number, ms: number): Promise<string[]> {
  return submitMany(
    fleet as Fleet,
    'slow',
    Array.from({ length: count }, (_, i) => slow(ms, i)),
  );
}

/** Settles, checks that nothing is open in Redis, and that no terminal state changes afterwards. */
async function ledger(of: Fleet, seconds: number): Promise<Map<string, RequestStatus>> {
  const ended = await of.api.settle(seconds);
  await sleep(500);
  for (const [id, status] of ended) expect((await of.api.record(id)).status).toBe(status);
  return ended;
}

describe('a runner', () => {
  it('killed mid-batch is replaced, and its batch is run again: nobody notices', async () => {
    const { api } = await start();
    await submitSlow(40, 60);
    await sleep(150);
    const [before] = await (fleet as Fleet).runnerPids();
    process.kill(before as number, 'SIGKILL');
    const ended = await ledger(fleet as Fleet, 40);
    expect(tally(ended.values())).toEqual({ succeeded: 40 });
    const device = async () => (await api.fleet()).workers[0]?.devices[0];
    // The next heartbeat tells, and the API looks at it a moment later.
    await expect.poll(device, HEARD_OF).toMatchObject({ runner: 'ready', runner_restarts: 1 });
    expect((await device())?.runner_pid).not.toBe(before);
  });

  it('killed by a poison request among 31 good ones: 31 succeed, 1 fails with its reason', async () => {
    const { api } = await start();
    const ids = await submitMany(
      fleet as Fleet,
      'crash-on-mark',
      Array.from({ length: 32 }, (_, i) => ({ inputs: { x: row(i === 13 ? 777 : i) } })),
    );
    const ended = await ledger(fleet as Fleet, 60);
    expect(tally(ended.values())).toEqual({ succeeded: 31, failed: 1 });
    const poison = await api.result(ids[13] as string);
    expect(poison.error).toMatchObject({ code: 'runner_crashed', retryable: false });
    expect(poison.error?.message).toContain('SIGKILL');
    const neighbour = await api.result(ids[14] as string);
    expect(neighbour.outputs?.y?.data).toEqual([14, 1, 2, 3]);
  });

  it('killed again and again by one model costs requests of another model nothing', async () => {
    await start();
    const poison = Array.from({ length: 8 }, (_, i) => ({ inputs: { x: row(i === 5 ? 777 : i) } }));
    const innocent = await submitMany(fleet as Fleet, 'slow', [slow(700, 1), slow(700, 2), slow(701, 3)]);
    const poisoned = [];
    for (let round = 0; round < 3; round++) {
      poisoned.push(...(await submitMany(fleet as Fleet, 'crash-on-mark', poison)));
      await sleep(300);
    }
    const ended = await ledger(fleet as Fleet, 60);
    for (const id of innocent) expect(ended.get(id)).toBe('succeeded');
    expect(tally(poisoned.map((id) => ended.get(id) as RequestStatus))).toEqual({ succeeded: 21, failed: 3 });
  });

  it('that hangs is killed after timeout_ms and replaced; the request that hung it fails, others succeed', async () => {
    const { api } = await start();
    const hung = await api.submit('slow', slow(3_600_000));
    const others = await submitSlow(6, 5);
    const ended = await ledger(fleet as Fleet, 60);
    expect(ended.get(hung.body.request_id)).toBe('failed');
    expect((await api.result(hung.body.request_id)).error?.code).toBe('run_timeout');
    for (const id of others) expect(ended.get(id)).toBe('succeeded');
  });
});

describe('a worker', () => {
  it('killed mid-batch: another takes its jobs over when their locks have run out', async () => {
    await start(2);
    await submitSlow(60, 40);
    await sleep(200);
    (fleet as Fleet).workers[0]?.child.kill('SIGKILL');
    const ended = await ledger(fleet as Fleet, 60);
    expect(tally(ended.values())).toEqual({ succeeded: 60 });
  });

  it('stopped for twice the lock time and woken again writes nothing over what others did', async () => {
    await start(2);
    await submitSlow(60, 40);
    await sleep(200);
    const paused = (fleet as Fleet).workers[0];
    paused?.child.kill('SIGSTOP');
    await sleep(2 * LOCK_MS);
    paused?.child.kill('SIGCONT');
    const ended = await ledger(fleet as Fleet, 60);
    expect(tally(ended.values())).toEqual({ succeeded: 60 });
  });

  it('asked to stop hands back what it has not run, within its drain time, and loses nothing', async () => {
    await start(2);
    await submitSlow(80, 40);
    await sleep(200);
    const [leaving] = (fleet as Fleet).workers;
    const asked = Date.now();
    leaving?.child.kill('SIGTERM');
    expect(await leaving?.ended).toBe(0);
    expect(Date.now() - asked).toBeLessThan(10_000);
    const ended = await ledger(fleet as Fleet, 60);
    expect(tally(ended.values())).toEqual({ succeeded: 80 });
    const workers = async () => (await (fleet as Fleet).api.fleet()).workers;
    await expect.poll(workers, HEARD_OF).toHaveLength(1);
  });
});

it('a worker with a backlog and no progress says so, with the reason, and that it is over', async () => {
  const { api, workers } = await start(1, { REMUDA_WORKER_STALL_MS: '1000' });
  const livez = async () => {
    const response = await fetch(`${workers[0]?.url}/livez`);
    return { status: response.status, text: await response.text() };
  };
  expect((await livez()).status).toBe(200);
  await api.submit('slow', slow(2_700));
  await expect.poll(async () => (await livez()).status, { timeout: 5_000, interval: 50 }).toBe(503);
  const stalled = await livez();
  expect(stalled.text).toMatch(/slow@1 on cpu: 1 items in hand and no batch has come back for \d s/);
  await api.settle(20);
  await expect.poll(async () => (await livez()).status, HEARD_OF).toBe(200);
});

describe('Redis', () => {
  it('killed and restarted under load: what was accepted ends, what was refused is not there', async () => {
    const { api, redis } = await start();
    const refused = new Set<string>();
    let going = true;
    let sent = 0;
    const load = async (): Promise<void> => {
      while (going) {
        const id = `load-${sent++}`;
        const answer = await api
          .submit('identity-fp32', { request_id: id, inputs: { x: row(sent) } })
          .catch(() => null);
        if (answer === null || answer.status >= 300) {
          expect(answer?.status).toBe(503);
          expect(answer?.headers.get('retry-after')).toMatch(/^\d+$/);
          refused.add(id);
          await sleep(50);
        }
      }
    };
    const senders = Array.from({ length: 4 }, load);
    await sleep(1_000);
    await redis.kill9();
    await sleep(1_500);
    await redis.restart();
    await sleep(2_000);
    going = false;
    await Promise.all(senders);
    const ended = await ledger(fleet as Fleet, 60);
    expect(tally(ended.values())).toEqual({ succeeded: api.accepted.size });
    expect(refused.size).toBeGreaterThan(0);
    for (const id of refused) expect((await api.get(`/v1/requests/${id}`)).status).toBe(404);
  });
});
