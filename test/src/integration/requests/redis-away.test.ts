/** Redis stopped, killed and restarted under submits: quick refusals, nothing half accepted, nothing accepted lost. */
import { RemudaError } from '@remuda/core/errors';
import { type PrivateRedis, startPrivateRedis } from '@remuda/infra/redis-launcher';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PARTITION, type Rig, setup, stored, submission, until } from './rig.js';

let redis: PrivateRedis;
let rig: Rig;
beforeEach(async () => {
  redis = await startPrivateRedis({ args: ['--appendfsync', 'always'] });
  rig = await setup({ url: redis.url });
});
afterEach(async () => {
  await rig.close();
  await redis.stop();
});

const isReady = () =>
  rig.cases.list({ limit: 1 }).then(
    () => true,
    () => false,
  );

/** Submits one after the other until told to stop; which ids were accepted, which refused. */
function submitting(prefix: string, known: { accepted: string[]; refused: string[] }, stop: AbortSignal) {
  return (async () => {
    for (let i = 0; !stop.aborted; i++) {
      const id = `${prefix}${i}`;
      const width = i % 3 === 0 ? 10_000 : 4;
      await rig.cases.submit(submission({ id, width })).then(
        () => known.accepted.push(id),
        (error: unknown) => {
          expect(error).toBeInstanceOf(RemudaError);
          known.refused.push(id);
        },
      );
      if (!rig.redis || known.refused.length > 400) await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
}

it('killed during submits: accepted ones are there after the restart, refused ones are not', async () => {
  const known = { accepted: [] as string[], refused: [] as string[] };
  const stop = new AbortController();
  const work = Array.from({ length: 16 }, (_, n) => submitting(`w${n}_`, known, stop.signal));
  await until('some accepted', () => known.accepted.length > 200);
  await redis.kill9();
  await until('some refused', () => known.refused.length > 20);
  stop.abort();
  await Promise.all(work);
  await redis.restart();
  await until('Redis answers again', isReady);
  await until('all is taken back', () => rig.cases.unwithdrawn === 0);
  const there = await rig.store.read([...known.accepted, ...known.refused]);
  const missing = known.accepted.filter((_, i) => there[i] === null);
  const left = known.refused.filter((_, i) => there[known.accepted.length + i] !== null);
  expect(missing).toEqual([]);
  expect(left).toEqual([]);
  const queue = rig.queues.of(PARTITION);
  for (const id of known.refused) expect(await queue.has(id), id).toBe(false);
  for (const id of known.accepted) expect(await queue.has(id), id).toBe(true);
  expect(await rig.store.countOpen()).toBe(known.accepted.length);
});

it('stopped in the middle: a refusal while it stands still, and what it left behind is taken back', async () => {
  await rig.cases.submit(submission({ id: 'before' }));
  process.kill(redis.pid, 'SIGSTOP');
  const attempts = ['mine', undefined].map((id) => rig.cases.submit(submission({ id })));
  const settled = await Promise.allSettled(attempts);
  process.kill(redis.pid, 'SIGCONT');
  for (const one of settled) {
    expect(one).toMatchObject({ status: 'rejected', reason: { code: 'store_unavailable', retryable: true } });
  }
  await until('all is taken back', () => rig.cases.unwithdrawn === 0);
  expect(await rig.store.countOpen()).toBe(1);
  expect((await rig.queues.of(PARTITION).depth()).waiting).toBe(1);
  expect(await stored(rig.store, 'mine')).toBeNull();
});

it('a repeated call that fails never takes away what the first was promised', async () => {
  await rig.cases.submit(submission({ id: 'mine' }));
  process.kill(redis.pid, 'SIGSTOP');
  await expect(rig.cases.submit(submission({ id: 'mine' }))).rejects.toMatchObject({
    code: 'store_unavailable',
  });
  process.kill(redis.pid, 'SIGCONT');
  await until('all is taken back', () => rig.cases.unwithdrawn === 0);
  expect((await stored(rig.store, 'mine'))?.status).toBe('queued');
  expect(await rig.queues.of(PARTITION).has('mine')).toBe(true);
});

it('away: everything is refused at once, and works again without a restart of ours', async () => {
  await redis.kill9();
  await until('the loss is seen', async () => !(await isReady()));
  const begun = Date.now();
  await expect(rig.cases.submit(submission())).rejects.toMatchObject({ code: 'store_unavailable' });
  const many = await rig.cases.submitMany([submission(), submission()]);
  expect(many).toMatchObject([{ code: 'store_unavailable' }, { code: 'store_unavailable' }]);
  await expect(rig.cases.get('x')).rejects.toMatchObject({ code: 'store_unavailable' });
  // Not even once the time that a silent Redis is given.
  expect(Date.now() - begun).toBeLessThan(1_800);
  await redis.restart();
  await until('Redis answers again', isReady);
  expect((await rig.cases.submit(submission())).known).toBe(false);
});

it('above four fifths of its memory nothing is accepted', async () => {
  await rig.redis.set('filler', Buffer.alloc(64 * 1024 * 1024));
  await rig.redis.config('SET', 'maxmemory', '75mb');
  await until('it is noticed', () =>
    rig.cases.submit(submission()).then(
      () => false,
      (error: RemudaError) => error.code === 'store_full' && /above 80 %/.test(error.message),
    ),
  );
  await rig.redis.del('filler');
  await until('it is noticed again', () =>
    rig.cases.submit(submission()).then(
      () => true,
      () => false,
    ),
  );
});
