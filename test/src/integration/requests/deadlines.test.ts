/** Deadlines to start and to finish, in the store: Redis decides by its own clock, whatever hosts think the time is. */
import { lifeLog } from '@remuda/core/observability/events';
import { silentLogger } from '@remuda/core/observability/logger';
import { Sweeper } from '@remuda/core/requests/sweep-requests';
import { StoreClock } from '@remuda/core/store/store-clock';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import type { RequestMetadata } from '@remuda/schemas';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  outcome,
  PARTITION,
  passDeadline,
  type Rig,
  setup,
  stored,
  submission,
  tensor,
  unitOf,
} from './rig.js';

const HOUR = 3_600_000;
let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

interface Asked extends Partial<RequestMetadata> {
  values?: number[];
}

async function submit({ values, ...metadata }: Asked): Promise<string> {
  const asked = { priority: 5, ...metadata };
  return (await rig.cases.submit(submission({ values, metadata: asked }))).record.request_id;
}

const recordOf = async (id: string): Promise<StoredRecord> => (await stored(rig.store, id)) as StoredRecord;
const due = (): Promise<string[]> => rig.redis.zrange(rig.keys.due(0), '0', '-1');
const claim = async (id: string, token = 1, begun = false) => {
  const [answer] = await rig.store.claimAndFetch([unitOf(await recordOf(id), 0, token)], 'worker', begun);
  return answer;
};
const answerLate = async (id: string, item = 0) =>
  rig.store.writeOutcomes([outcome(unitOf(await recordOf(id), item), 'ok', [tensor('y', 1)])]);

/** @param aheadMs by how much the clock of its host is wrong */
async function sweep(aheadMs = 0): Promise<void> {
  const clock = { now: () => Date.now() + aheadMs, after: () => () => {} };
  const { redis, store, queues, metrics } = rig;
  const life = lifeLog(silentLogger);
  const sweeper = new Sweeper({ redis, store, queues, metrics, life, clock, onError: () => {} });
  await sweeper.turn();
  await sweeper.stop();
}

describe('the deadline to start', () => {
  it('is the earlier of time-out and point in time, and stands in the record', async () => {
    const id = await submit({ timeout_ms: HOUR, start_by: '2999-01-01T00:00:00Z' });
    const { deadline, acceptedAt } = await recordOf(id);
    expect(deadline).toBe(acceptedAt + HOUR);
    const other = await submit({
      timeout_ms: 24 * HOUR,
      start_by: new Date(Date.now() + HOUR).toISOString(),
    });
    expect((await recordOf(other)).deadline).toBeLessThanOrEqual(Date.now() + HOUR);
  });

  it('ends what waits on a queue without any worker, and takes its job away', async () => {
    const id = await submit({ timeout_ms: HOUR });
    await passDeadline(rig, id, 'start');
    await sweep();
    expect(await recordOf(id)).toMatchObject({
      status: 'expired',
      error: { code: 'deadline_exceeded', details: { deadline: 'start' } },
    });
    expect(await rig.queues.of(PARTITION).has(id)).toBe(false);
    expect(await due()).toEqual([]);
  });

  it('ends thousands in one turn, however many others are open', async () => {
    const some = Array.from({ length: 1_200 }, () =>
      submission({ metadata: { priority: 5, timeout_ms: HOUR } }),
    );
    const answers = await rig.cases.submitMany(some);
    const ids = answers.map((answer) => ('record' in answer ? answer.record.request_id : ''));
    await Promise.all(ids.map((id) => passDeadline(rig, id, 'start')));
    const open = await submit({ timeout_ms: HOUR });
    await sweep();
    expect(await due()).toEqual([open]);
    expect(await rig.store.countOpen()).toBe(1);
  });

  it('refuses the claim of a worker that comes too late, and of a later attempt', async () => {
    const id = await submit({ timeout_ms: HOUR });
    expect(await claim(id, 1)).toMatchObject({ verdict: 'run' });
    await passDeadline(rig, id, 'start');
    expect(await claim(id, 1), 'this attempt had begun: other items, or halves of its batch').toMatchObject({
      verdict: 'run',
    });
    expect(await claim(id, 2)).toEqual({ verdict: 'expired_start' });
  });

  it('tells the runner how long it may still wait, and nothing where the run has begun before', async () => {
    const id = await submit({ timeout_ms: HOUR });
    const claimed = await claim(id);
    const left = claimed?.verdict === 'run' ? (claimed.limits?.startBy ?? 0) - performance.now() : 0;
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(HOUR);
    expect(await claim(id, 1, true)).not.toHaveProperty('limits.startBy');
    const none = await submit({});
    expect(await claim(none)).toMatchObject({ verdict: 'run', limits: undefined });
  });

  it('leaves a request to the worker that has it', async () => {
    const id = await submit({ timeout_ms: HOUR });
    await claim(id);
    await passDeadline(rig, id, 'start');
    await sweep();
    expect((await recordOf(id)).status).toBe('running');
    expect(await due(), 'it is not looked at in vain again and again').toEqual([]);
  });
});

describe('the deadline to finish', () => {
  it('ends a request that runs, and throws away what its run answers later', async () => {
    const id = await submit({ finish_timeout_ms: HOUR });
    await claim(id);
    await passDeadline(rig, id, 'finish');
    await sweep();
    expect(await recordOf(id)).toMatchObject({
      status: 'expired',
      error: { details: { deadline: 'finish' } },
    });
    expect(await answerLate(id)).toEqual([{ verdict: 'already_terminal', ended: null }]);
    expect((await rig.cases.result(id))?.items[0]).toMatchObject({ status: 'expired', outputs: null });
  });

  it('refuses an answer that is late, with no sweeper anywhere: the request ends as expired', async () => {
    const id = await submit({ finish_timeout_ms: HOUR });
    await claim(id);
    await passDeadline(rig, id, 'finish');
    expect(await answerLate(id)).toEqual([{ verdict: 'too_late', ended: 'expired' }]);
    expect(await recordOf(id)).toMatchObject({ status: 'expired', error: { code: 'deadline_exceeded' } });
    expect(await due()).toEqual([]);
  });

  it('keeps the outcomes of items that were in time', async () => {
    const id = await submit({ finish_timeout_ms: HOUR, values: [1, 2, 3] });
    await claim(id);
    await answerLate(id, 0);
    await passDeadline(rig, id, 'finish');
    expect(await answerLate(id, 1)).toEqual([{ verdict: 'too_late', ended: 'expired' }]);
    const result = await rig.cases.result(id);
    expect(result?.items.map(({ status }) => status)).toEqual(['succeeded', 'expired', 'expired']);
    expect(await rig.cases.get(id)).toMatchObject({ items: { total: 3, succeeded: 1, failed: 2 } });
  });

  it('refuses the claim, in any attempt', async () => {
    const id = await submit({ finish_timeout_ms: HOUR });
    await claim(id);
    await passDeadline(rig, id, 'finish');
    expect(await claim(id, 1)).toEqual({ verdict: 'expired_finish' });
    expect(await claim(id, 2)).toEqual({ verdict: 'expired_finish' });
  });

  it('goes before a cancellation and before giving up: neither changes that it was late', async () => {
    const [one, two] = [await submit({ finish_timeout_ms: HOUR }), await submit({ finish_timeout_ms: HOUR })];
    await passDeadline(rig, one, 'finish');
    await passDeadline(rig, two, 'finish');
    await expect(rig.cases.cancel(one)).rejects.toMatchObject({ code: 'request_terminal' });
    const reason = { code: 'worker_lost' as const, message: 'lost', retryable: true };
    expect(await rig.store.end(two, 'failed', reason)).toEqual({ changed: false, status: 'expired' });
    for (const id of [one, two]) expect((await recordOf(id)).status).toBe('expired');
  });

  it('is told to who asks for the record or waits, the moment it has passed, with no sweeper anywhere', async () => {
    const id = await submit({ finish_timeout_ms: 60 });
    expect((await rig.cases.waitFor(id, 60_000)).status).toBe('expired');
    const other = await submit({ timeout_ms: HOUR });
    await passDeadline(rig, other, 'start');
    expect((await rig.cases.get(other)).status).toBe('expired');
  });
});

describe('a host whose clock is wrong', () => {
  it('expires nothing early as the sweeper', async () => {
    const ids = [await submit({ timeout_ms: HOUR }), await submit({ finish_timeout_ms: HOUR })];
    await sweep(2 * HOUR);
    for (const id of ids) expect((await recordOf(id)).status).toBe('queued');
  });

  it('sets deadlines by the clock of Redis, as the API', async () => {
    await rig.close();
    const host = { now: () => Date.now() + 2 * HOUR, after: () => () => {} };
    rig = await setup();
    const clock = new StoreClock({ redis: rig.redis, host });
    await clock.start();
    await rig.close();
    rig = await setup({ clock });
    const { deadline } = await recordOf(await submit({ timeout_ms: HOUR }));
    expect(deadline).toBeLessThanOrEqual(Date.now() + HOUR);
    expect(deadline).toBeGreaterThan(Date.now());
    expect(clock.hostAheadMs).toBeGreaterThan(HOUR);
    await clock.stop();
  });
});

describe('what an older build has stored', () => {
  it('has no deadline to finish and stands in no index: it is ended all the same, and runs as before', async () => {
    const [late, good] = [await submit({ timeout_ms: HOUR }), await submit({ timeout_ms: HOUR })];
    for (const id of [late, good]) await rig.redis.hdel(rig.keys.record(id), 'fdl');
    await rig.redis.hset(rig.keys.record(late), 'dl', Date.now() - 1);
    await rig.redis.del(rig.keys.due(0));
    await sweep();
    expect((await recordOf(late)).status).toBe('expired');
    await claim(good);
    expect(await answerLate(good)).toEqual([{ verdict: 'written', ended: 'succeeded' }]);
  });
});

it('a worker that takes up from a dead one what is too late to start has it from then on', async () => {
  const metadata = { priority: 5, timeout_ms: 60_000 };
  const { record } = await rig.cases.submit(submission({ metadata }));
  const id = record.request_id;
  const taken = await recordOf(id);
  await rig.store.claimAndFetch([unitOf(taken, 0, 1)], 'dead');
  await passDeadline(rig, id, 'start');
  const [claim] = await rig.store.claimAndFetch([unitOf(taken, 0, 2)], 'alive');
  expect(claim?.verdict).toBe('expired_start');
  expect(await rig.redis.hmget(rig.keys.record(id), 'tok', 'w')).toEqual(['2', 'alive']);
});
