/** An API process that dies, or is cut off from Redis, between any two steps of a call with an Idempotency-Key. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RedisGate } from '../../support/redis-gate.js';
import { type Answer, type Rig, setup } from './rig.js';

const MAIN = fileURLToPath(new URL('../../../../apps/producer-api/dist/main.js', import.meta.url));
const BODY = { inputs: { x: [1, 2, 3] } };
const BATCH = {
  requests: [
    { model: 'rows', ...BODY },
    { model: 'rows', inputs: { x: [4, 5, 6] } },
  ],
};
const KEY = { 'idempotency-key': '"paid once"' };

/** Texts that stand first in the command of a step. */
const STEPS = {
  'before the record of the request': ':q:',
  'between record and job': '"tokenBase"',
  'between job and answer': '\r\nanswered\r\n',
} as const;

let rig: Rig;
let gate: RedisGate;
let child: ChildProcess;
let url: string;
beforeEach(async () => {
  rig = await setup();
  gate = await RedisGate.before(process.env.REMUDA_TEST_REDIS_URL as string);
  const { PATH = '', HOME = '' } = process.env;
  child = fork(MAIN, {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: {
      PATH,
      HOME,
      REDIS_URL: gate.url,
      REMUDA_KEY_PREFIX: rig.keys.space.prefix,
      REMUDA_API_PORT: '0',
      REMUDA_MODELS: '/nowhere',
    },
  });
  url = await new Promise<string>((resolve) =>
    child.on('message', (ready) => resolve((ready as { url: string }).url)),
  );
  // The queue is known from here on, so the first command about it that the gate sees is the job.
  expect((await ask('/v1/models/rows/requests', BODY)).status).toBe(202);
});
afterEach(async () => {
  child.kill('SIGKILL');
  await gate.close();
  await rig.close();
});

const ask = (path: string, body: unknown, headers = {}): Promise<Response> =>
  fetch(`${url}${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  });

/** The other API, once the lease of the call that was cut off has run out. */
async function again(path: string, body: unknown): Promise<Answer> {
  const busy = await rig.post(path, body, KEY);
  expect(busy.body).toMatchObject({ code: 'idempotency_in_progress' });
  await endLease();
  return rig.post(path, body, KEY);
}

async function endLease(): Promise<void> {
  const [record] = await rig.redis.keys(rig.keys.once('*'));
  await rig.redis.hset(record as string, 'until', '0');
}

async function ledger(): Promise<{ open: number; jobs: number }> {
  const queue = `${rig.keys.space.prefix}:queue:{rows/cpu/interactive}:prioritized`;
  return { open: await rig.store.countOpen(), jobs: await rig.redis.zcard(queue) };
}

describe.each(Object.entries(STEPS))('killed %s', (_, marker) => {
  it('a request is there once when its call is made again', async () => {
    const held = gate.holdAt(marker);
    const lost = ask('/v1/models/rows/requests', BODY, KEY).catch((error: unknown) => error);
    await held;
    child.kill('SIGKILL');
    expect(await lost).toBeInstanceOf(Error);
    const answer = await again('/v1/models/rows/requests', BODY);
    expect(answer.status).toBe(202);
    // One of them was sent before the gate was closed.
    expect(await ledger()).toEqual({ open: 2, jobs: 2 });
    expect((await rig.post('/v1/models/rows/requests', BODY, KEY)).bytes).toEqual(answer.bytes);
  });

  it('and so is each of a batch', async () => {
    const held = gate.holdAt(marker);
    const lost = ask('/v1/requests:batch', BATCH, KEY).catch((error: unknown) => error);
    await held;
    child.kill('SIGKILL');
    await lost;
    expect((await again('/v1/requests:batch', BATCH)).body).toMatchObject({ accepted: 2 });
    expect(await ledger()).toEqual({ open: 3, jobs: 3 });
  });

  it('a cut connection is as good', async () => {
    const held = gate.holdAt(marker);
    const first = ask('/v1/models/rows/requests', BODY, KEY);
    await held;
    gate.cut();
    const { status } = await first;
    // What is accepted is not refused because its answer could not be kept.
    expect(status).toBe(marker === STEPS['between job and answer'] ? 202 : 503);
    await endLease();
    expect((await rig.post('/v1/models/rows/requests', BODY, KEY)).status).toBe(202);
    await untilWithdrawn();
    expect(await ledger()).toEqual({ open: 2, jobs: 2 });
  });
});

/** The API that was cut off takes back what it refused, twice: that may not touch what the other has accepted. */
async function untilWithdrawn(): Promise<void> {
  const { status } = await fetch(`${url}/readyz`);
  if (status !== 200) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return untilWithdrawn();
  }
  child.kill('SIGTERM');
  await new Promise((resolve) => child.once('exit', resolve));
}

it('a request that has ended and is kept no longer is not made again', async () => {
  const held = gate.holdAt(STEPS['between job and answer']);
  const body = { ...BODY, metadata: { result_ttl_s: 1 } };
  const lost = ask('/v1/models/rows/requests', body, KEY).catch((error: unknown) => error);
  await held;
  child.kill('SIGKILL');
  await lost;
  const [, id = ''] = await rig.redis.zrange(rig.keys.all(0), '0', '-1');
  await rig.call('DELETE', `/v1/requests/${id}`);
  await rig.redis.del(rig.keys.record(id));
  const before = await ledger();
  await endLease();
  expect((await rig.post('/v1/models/rows/requests', body, KEY)).body).toMatchObject({
    code: 'request_not_found',
    detail: expect.stringContaining(id),
  });
  expect(await ledger()).toEqual(before);
});
