/**
 * Classes that are lost while requests wait for them. Tests play the workers with real consumers of the queues; a crash
 * between two steps is a turn whose queue cannot be written to.
 */
import { lifeLog } from '@remuda/core/observability/events';
import { silentLogger } from '@remuda/core/observability/logger';
import { JobConsumer, type TakenJob } from '@remuda/core/queue/job-queue';
import type { Partition } from '@remuda/core/queue/partitions';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import { Rerouter } from '@remuda/core/requests/reroute-requests';
import { Sweeper } from '@remuda/core/requests/sweep-requests';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { HarnessConfig } from '@remuda/schemas';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { alive, gone } from './fleet-facts.js';
import { outcome, type Rig, setup, signature, stored, submission, tensor, unitOf, until } from './rig.js';

const CUDA: Partition = { model: 'model', deviceClass: 'cuda', lane: 'interactive' };
const CPU: Partition = { ...CUDA, deviceClass: 'cpu' };
const HALF_OPEN = { device: 'cuda:0', breaker: 'half_open' as const };

let rig: Rig;
let now: number;
let rerouter: Rerouter;
const consumers: JobConsumer[] = [];

beforeEach(async () => {
  rig = await setup();
  now = Date.now();
  rerouter = newRerouter();
  const affinity = { affinity: ['cuda' as const, 'cpu' as const] };
  await publishSignature(rig.redis, rig.keys, signature(affinity), HarnessConfig.parse({ harness: 'onnx' }));
  await alive(rig, 'gpu', [{ device: 'cuda:0' }]);
  await alive(rig, 'cpu', [{}]);
  await until(
    'the API knows both classes',
    async () => (await rig.cases.signatureOf('model')).affinity.length === 2,
  );
});
afterEach(async () => {
  await Promise.all(consumers.splice(0).map((consumer) => consumer.close(true)));
  await rerouter.stop();
  await rig.close();
});

const clock = { now: () => now, after: () => () => {} };
const parts = () => ({ ...rig, life: lifeLog(silentLogger), clock, onError: () => {} });

function newRerouter(over: Partial<ConstructorParameters<typeof Rerouter>[0]> = {}): Rerouter {
  return new Rerouter({ ...parts(), ...over });
}

async function submit(device?: string): Promise<string> {
  const request = submission();
  if (device) request.options.device = device;
  return (await rig.cases.submit(request)).record.request_id;
}

/** Loses the class for longer than a restart takes. */
async function loseCuda(): Promise<void> {
  await gone(rig, 'gpu');
  await rerouter.turn();
  now += 6_000;
}

const has = (partition: Partition, id: string) => rig.queues.of(partition).has(id);
const record = async (id: string) => (await stored(rig.store, id)) as StoredRecord;

/** A worker of the partition, whose jobs are handled by `handle`. */
function consume(partition: Partition, handle: (job: TakenJob) => Promise<void>): JobConsumer {
  const consumer = new JobConsumer({
    partition,
    redis: rig.redis,
    keyPrefix: rig.keys.space.prefix,
    concurrency: 16,
    lockMs: 1_000,
    handle,
    onGivenUp: () => {},
    onLockLost: () => {},
    onError: () => {},
  });
  consumers.push(consumer);
  consumer.start();
  return consumer;
}

/** What a worker does with a job: claim, run, write. Says what came of claim and write. */
async function run(job: TakenJob): Promise<string> {
  const unit = unitOf(await record(job.ticket.requestId), 0, job.token);
  const [claim] = await rig.store.claimAndFetch([unit], 'worker');
  if (claim?.verdict !== 'run') return claim?.verdict ?? 'none';
  const [write] = await rig.store.writeOutcomes([outcome(unit, 'ok', [tensor('y', 1)])]);
  return write?.verdict ?? 'none';
}

it('moves what waits for a class that has lost its last worker, says so, and each runs once', async () => {
  const ids = await Promise.all(Array.from({ length: 20 }, () => submit()));
  expect((await rig.cases.get(ids[0] as string)).route.device_class).toBe('cuda');
  await loseCuda();
  await rerouter.turn();
  const moved = await rig.cases.get(ids[0] as string);
  expect(moved.route).toMatchObject({ device_class: 'cpu', lane: 'interactive' });
  expect(moved.route.reasons).toContainEqual(
    expect.stringMatching(/^cuda has lost its last live worker: moved to cpu at /),
  );
  expect(moved).toMatchObject({ status: 'queued', attempts: 0, notices: [] });
  expect(await rig.queues.of(CUDA).depth()).toEqual({ waiting: 0, active: 0 });
  const verdicts: string[] = [];
  consume(CPU, async (job) => void verdicts.push(await run(job)));
  await until('all have run', () => verdicts.length === 20);
  expect(verdicts.every((verdict) => verdict === 'written')).toBe(true);
  expect(await rig.cases.get(ids[0] as string)).toMatchObject({ status: 'succeeded', attempts: 1 });
  expect(await rig.metrics.text()).toContain('remuda_repairs_total{kind="rerouted"} 20');
});

it('leaves a class alone that is back within the time of a restart', async () => {
  const id = await submit();
  await gone(rig, 'gpu');
  await rerouter.turn();
  now += 3_000;
  await alive(rig, 'gpu', [{ device: 'cuda:0' }]);
  await rerouter.turn();
  await gone(rig, 'gpu');
  now += 3_000;
  await rerouter.turn();
  expect(await has(CUDA, id)).toBe(true);
});

it('leaves with its class what asked for it by name, and says why it waits', async () => {
  const id = await submit('cuda');
  await loseCuda();
  await rerouter.turn();
  expect(await has(CUDA, id)).toBe(true);
  expect((await rig.cases.get(id)).notices).toEqual([
    'no live worker has model version 1 on cuda, which the request asks for: it waits for one',
  ]);
});

it('leaves everything where it is while no class can take over', async () => {
  const id = await submit();
  await gone(rig, 'cpu');
  await loseCuda();
  await rerouter.turn();
  expect(await has(CUDA, id)).toBe(true);
  expect((await rig.cases.get(id)).notices).toEqual([
    'no live worker has model version 1 on cuda: it waits for one, or for a class that may take over',
  ]);
});

it('moves what waits for a class whose breaker is open, and not while it is tried again', async () => {
  const id = await submit();
  await alive(rig, 'gpu', [HALF_OPEN]);
  await rerouter.turn();
  now += 6_000;
  await rerouter.turn();
  expect(await has(CUDA, id)).toBe(true);
  await alive(rig, 'gpu', [{ ...HALF_OPEN, breaker: 'open' }]);
  await rerouter.turn();
  now += 6_000;
  await rerouter.turn();
  expect(await has(CUDA, id)).toBe(false);
  expect(await has(CPU, id)).toBe(true);
});

it('does not touch what a worker has begun to run', async () => {
  const id = await submit();
  let finish = (): void => {};
  const verdicts: string[] = [];
  consume(CUDA, async (job) => {
    const unit = unitOf(await record(id), 0, job.token);
    await rig.store.claimAndFetch([unit], 'worker');
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    const [write] = await rig.store.writeOutcomes([outcome(unit, 'ok', [tensor('y', 1)])]);
    verdicts.push(write?.verdict ?? 'none');
  });
  await until('it is being run', async () => (await record(id)).status === 'running');
  await loseCuda();
  await rerouter.turn();
  expect((await record(id)).document.route.device_class).toBe('cuda');
  finish();
  await until('it was written', () => verdicts.length > 0);
  expect(verdicts).toEqual(['written']);
});

it('frees what a dead worker had begun, once its locks have run out', async () => {
  const id = await submit();
  consume(CUDA, async (job) => {
    await rig.store.claimAndFetch([unitOf(await record(id), 0, job.token)], 'dead');
    await new Promise(() => {});
  });
  await until('it is being run', async () => (await record(id)).status === 'running');
  await consumers.pop()?.close(true);
  await loseCuda();
  const lock = `${rig.keys.space.prefix}:queue:{model/cuda/interactive}:${id}:lock`;
  await until('its lock has run out', async () => (await rig.redis.exists(lock)) === 0);
  await rerouter.turn();
  expect(await has(CUDA, id)).toBe(false);
  const verdicts: string[] = [];
  consume(CPU, async (job) => void verdicts.push(await run(job)));
  await until('it has run', () => verdicts.length > 0);
  expect(verdicts).toEqual(['written']);
  expect(await rig.cases.get(id)).toMatchObject({ status: 'succeeded', attempts: 2 });
});

it('fences a worker that took the job up before the move and runs it after', async () => {
  const id = await submit();
  let go = (): void => {};
  const old: string[] = [];
  consume(CUDA, async (job) => {
    await new Promise<void>((resolve) => {
      go = resolve;
    });
    old.push(await run(job));
  });
  // The move looks at jobs that wait; this one is taken up between the look and the step.
  const waiting = await rig.queues
    .of(CUDA)
    .waiting(10)
    .then((jobs) => jobs[0] ?? { requestId: id, token: 0 });
  await until('a worker has it', async () => (await rig.queues.of(CUDA).depth()).active === 1);
  const before = await record(id);
  const route = { ...before.document.route, device_class: 'cpu' };
  expect(await rig.store.reroute(before, route, Math.min(waiting.token, 0), false)).toBe('moved');
  expect(await rig.store.reroute(before, route, 0, false), 'a second mover').toBe('refused');
  go();
  await until('the old job was handled', () => old.length > 0);
  expect(old).toEqual(['fenced']);
  expect(await rig.cases.get(id)).toMatchObject({ status: 'queued', attempts: 0 });
});

/** Queues of which one step does not come to pass: the mover dies there. */
function dyingAt(step: 'remove' | 'add'): Rig['queues'] {
  return {
    of: (partition: Partition) => {
      const queue = rig.queues.of(partition);
      return new Proxy(queue, {
        get: (target, name) => {
          if (name === step) return () => Promise.reject(new Error('killed'));
          const value = Reflect.get(target, name);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    },
  } as Rig['queues'];
}

async function dieAt(step: 'remove' | 'add'): Promise<void> {
  await gone(rig, 'gpu');
  const dying = newRerouter({ queues: dyingAt(step) });
  await dying.turn();
  now += 6_000;
  await expect(dying.turn()).rejects.toThrow('killed');
  await dying.stop();
}

it('killed after the record was changed: the next mover finishes it', async () => {
  const id = await submit();
  await dieAt('remove');
  expect((await record(id)).document.route.device_class).toBe('cpu');
  expect(await has(CUDA, id)).toBe(true);
  await rerouter.turn();
  now += 6_000;
  await rerouter.turn();
  expect([await has(CUDA, id), await has(CPU, id)]).toEqual([false, true]);
});

it('killed after the record was changed, and the old worker comes back: the request runs once', async () => {
  const id = await submit();
  await dieAt('remove');
  const verdicts: Record<string, string> = {};
  consume(CUDA, async (job) => {
    verdicts.cuda = await run(job);
  });
  await until('the old job was handled', () => verdicts.cuda !== undefined);
  expect(verdicts.cuda).toBe('fenced');
  await sweep();
  consume(CPU, async (job) => {
    verdicts.cpu = await run(job);
  });
  await until('the new job was handled', () => verdicts.cpu !== undefined);
  expect(verdicts.cpu).toBe('written');
  expect((await rig.cases.get(id)).status).toBe('succeeded');
});

it('killed when the old job was gone and the new one was not there: the sweeper adds it', async () => {
  const id = await submit();
  await dieAt('add');
  expect([await has(CUDA, id), await has(CPU, id)]).toEqual([false, false]);
  await sweep();
  expect([await has(CUDA, id), await has(CPU, id)]).toEqual([false, true]);
  const verdicts: string[] = [];
  consume(CPU, async (job) => void verdicts.push(await run(job)));
  await until('it has run', () => verdicts.length > 0);
  expect(verdicts).toEqual(['written']);
});

async function sweep(): Promise<void> {
  now = Date.now() + 31_000;
  const sweeper = new Sweeper(parts());
  await sweeper.turn();
  await sweeper.stop();
}
