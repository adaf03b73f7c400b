/**
 * Faults to survive, each with the ledger: every id that was accepted has exactly one terminal record, nothing is
 * lost, no terminal state changes.
 */
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestStatus } from '@remuda/schemas';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { tally } from '../support/api.js';
import { Fleet, type FleetProcess } from '../support/fleet.js';
import { Gate } from '../support/gate.js';
import { testModels } from '../support/test-models.js';

/** Short, so that the jobs of a worker that is gone are free again soon. */
const LOCK_MS = 2_000;
/** For all to end, however busy the machine is. */
const SETTLED_S = 120;

let models: string;
let gate: Gate;
let fleet: Fleet | undefined;

beforeAll(async () => {
  models = await testModels();
  gate = new Gate(models);
});
afterEach(async () => {
  gate.open();
  await fleet?.stop();
  fleet = undefined;
});
afterAll(() => rmSync(models, { recursive: true, force: true }));

async function start(workers = 1, env: Record<string, string> = {}): Promise<Fleet> {
  fleet = await Fleet.start({
    models,
    workers,
    env: {
      REMUDA_WORKER_MODELS: 'slow-limited,gated,identity-fp32,crash-on-mark',
      REMUDA_WORKER_LOCK_MS: String(LOCK_MS),
      ...env,
    },
  });
  return fleet;
}

const row = (first: number) => ({ datatype: 'FP32', shape: [1, 4], data: [first, 1, 2, 3] });

/** A request of the slow model: `rounds` of work, of which a machine does many thousands in a second. */
function slow(rounds: number) {
  return { inputs: { x: row(1), iterations: { datatype: 'INT64', shape: [], data: rounds } } };
}

async function submitMany(to: Fleet, model: string, requests: unknown[]): Promise<string[]> {
  const answers = await Promise.all(requests.map((request) => to.api.submit(model, request)));
  return answers.map(({ status, body }) => {
    expect(status).toBe(202);
    return body.request_id;
  });
}

/** Closes the gate behind so many requests: they are run when it opens, and no sooner. */
function submitGated(count: number): Promise<string[]> {
  gate.close();
  return submitMany(
    fleet as Fleet,
    'gated',
    Array.from({ length: count }, (_, i) => ({ inputs: { x: row(i) } })),
  );
}

/** Until so many workers have each closed a batch of the gated model, which then hangs at the gate. */
async function untilAtGate(workers: number): Promise<void> {
  const busy = () =>
    new Set(
      (fleet as Fleet)
        .logged('batched')
        .filter(({ model }) => model === 'gated')
        .map(({ worker_id }) => worker_id),
    ).size;
  await expect.poll(busy).toBe(workers);
}

/** Until a runner has one of the requests. */
async function untilRunning(ids: readonly string[]): Promise<void> {
  const statuses = () => Promise.all(ids.map(async (id) => (await (fleet as Fleet).api.record(id)).status));
  await expect.poll(statuses).toContain('running');
}

/** Settles, checks that nothing is open in Redis, and that no terminal state changes afterwards. */
async function ledger(of: Fleet): Promise<Map<string, RequestStatus>> {
  const ended = await of.api.settle(SETTLED_S);
  await sleep(500);
  for (const [id, status] of ended) expect((await of.api.record(id)).status).toBe(status);
  return ended;
}

describe('a runner', () => {
  it('killed mid-batch is replaced, and its batch is run again: nobody notices', async () => {
    const { api } = await start();
    await untilRunning(await submitGated(40));
    const [before] = await (fleet as Fleet).runnerPids();
    process.kill(before as number, 'SIGKILL');
    gate.open();
    const ended = await ledger(fleet as Fleet);
    expect(tally(ended.values())).toEqual({ succeeded: 40 });
    const device = async () => (await api.fleet()).workers[0]?.devices[0];
    // The next heartbeat tells, and the API looks at it a moment later.
    await expect.poll(device).toMatchObject({ runner: 'ready', runner_restarts: 1 });
    expect((await device())?.runner_pid).not.toBe(before);
  });

  it('killed by a poison request among 31 good ones: 31 succeed, 1 fails with its reason', async () => {
    const { api } = await start();
    const ids = await submitMany(
      fleet as Fleet,
      'crash-on-mark',
      Array.from({ length: 32 }, (_, i) => ({ inputs: { x: row(i === 13 ? 777 : i) } })),
    );
    const ended = await ledger(fleet as Fleet);
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
    const innocent = await submitGated(3);
    await untilRunning(innocent);
    const poisoned = await submitMany(fleet as Fleet, 'crash-on-mark', poison);
    await expect.poll(() => (fleet as Fleet).logged('bisected').length).toBeGreaterThan(0);
    gate.open();
    for (let round = 1; round < 3; round++) {
      poisoned.push(...(await submitMany(fleet as Fleet, 'crash-on-mark', poison)));
      innocent.push(...(await submitMany(fleet as Fleet, 'gated', [{ inputs: { x: row(round) } }])));
    }
    const ended = await ledger(fleet as Fleet);
    for (const id of innocent) expect(ended.get(id)).toBe('succeeded');
    expect(tally(poisoned.map((id) => ended.get(id) as RequestStatus))).toEqual({ succeeded: 21, failed: 3 });
  });

  it('that hangs is killed after timeout_ms and replaced; the request that hung it fails, others succeed', async () => {
    const { api } = await start();
    const hung = await api.submit('slow-limited', slow(Number.MAX_SAFE_INTEGER));
    const others = await submitMany(fleet as Fleet, 'slow-limited', Array(6).fill(slow(100)));
    const ended = await ledger(fleet as Fleet);
    expect(ended.get(hung.body.request_id)).toBe('failed');
    expect((await api.result(hung.body.request_id)).error?.code).toBe('run_timeout');
    for (const id of others) expect(ended.get(id)).toBe('succeeded');
  });
});

describe('a worker', () => {
  it('killed mid-batch: another takes its jobs over when their locks have run out', async () => {
    await start(2);
    // More than one worker takes: both have some.
    await submitGated(60);
    await untilAtGate(2);
    (fleet as Fleet).workers[0]?.child.kill('SIGKILL');
    gate.open();
    const ended = await ledger(fleet as Fleet);
    expect(tally(ended.values())).toEqual({ succeeded: 60 });
  });

  it('stopped until others have done its work and woken again writes nothing over it', async () => {
    const { api } = await start(2);
    await submitGated(60);
    await untilAtGate(2);
    const [paused] = (fleet as Fleet).workers as [FleetProcess];
    const processes = [paused.pid, await runnerOf(paused)];
    for (const pid of processes) process.kill(pid, 'SIGSTOP');
    gate.open();
    const before = await api.settle(SETTLED_S);
    expect(tally(before.values())).toEqual({ succeeded: 60 });
    for (const pid of processes) process.kill(pid, 'SIGCONT');
    // Its batches come back from the runner, and nothing of them was taken.
    await expect.poll(() => droppedBy(paused)).toBeGreaterThan(0);
    expect(await ledger(fleet as Fleet)).toEqual(before);
  });

  it('asked to stop hands back what it has not run, ends once its batches have, and loses nothing', async () => {
    // So long that no batch is cut off.
    await start(2, { REMUDA_WORKER_DRAIN_MS: '600000' });
    await submitGated(80);
    await untilAtGate(2);
    const [leaving] = (fleet as Fleet).workers;
    leaving?.child.kill('SIGTERM');
    await expect.poll(() => (fleet as Fleet).logged('handed_back').length).toBeGreaterThan(0);
    gate.open();
    expect(await leaving?.ended).toBe(0);
    const ended = await ledger(fleet as Fleet);
    expect(tally(ended.values())).toEqual({ succeeded: 80 });
    const workers = async () => (await (fleet as Fleet).api.fleet()).workers;
    await expect.poll(workers).toHaveLength(1);
  });

  async function runnerOf({ pid }: FleetProcess): Promise<number> {
    const runner = async () => {
      const { workers } = await (fleet as Fleet).api.fleet();
      return workers.find((worker) => worker.pid === pid)?.devices[0]?.runner_pid;
    };
    await expect.poll(runner).toEqual(expect.any(Number));
    return (await runner()) as number;
  }

  /** Items of its batches whose outcomes the store refused. */
  function droppedBy({ pid }: FleetProcess): number {
    const written = (fleet as Fleet).logged('written').filter((line) => line.pid === pid);
    return written.reduce((sum, { dropped }) => sum + (dropped as number), 0);
  }
});

it('a worker with a backlog and no progress says so, with the reason, and that it is over', async () => {
  const { api, workers } = await start(1, { REMUDA_WORKER_STALL_MS: '1000' });
  const livez = async () => {
    const response = await fetch(`${workers[0]?.url}/livez`);
    return { status: response.status, text: await response.text() };
  };
  expect((await livez()).status).toBe(200);
  await submitGated(1);
  await expect.poll(async () => (await livez()).status).toBe(503);
  const stalled = await livez();
  expect(stalled.text).toMatch(/gated@1 on cpu: 1 items in hand and no batch has come back for \d+ s/);
  gate.open();
  await api.settle(SETTLED_S);
  await expect.poll(async () => (await livez()).status).toBe(200);
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
    await expect.poll(() => api.accepted.size).toBeGreaterThan(50);
    await redis.kill9();
    await expect.poll(() => refused.size).toBeGreaterThan(0);
    await redis.restart();
    const before = api.accepted.size;
    await expect.poll(() => api.accepted.size).toBeGreaterThan(before + 50);
    going = false;
    await Promise.all(senders);
    const ended = await ledger(fleet as Fleet);
    expect(tally(ended.values())).toEqual({ succeeded: api.accepted.size });
    // What was left behind of a refused one is taken back when Redis is there again.
    for (const id of refused)
      await expect.poll(async () => (await api.get(`/v1/requests/${id}`)).status).toBe(404);
  });
});
