/** Submitting: what is accepted, what is known, what is refused, and what then lies in Redis. */
import { RemudaError } from '@remuda/core/errors';
import { ticketOf } from '@remuda/core/queue/job-queue';
import { queueName, queuePrefix } from '@remuda/core/queue/partitions';
import { decodeFrame } from '@remuda/schemas';
import { Queue } from 'bullmq';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answer, PARTITION, type Rig, setup, stored, submission, unitOf } from './rig.js';

let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

const codeOf = (error: unknown): string => (error instanceof RemudaError ? error.code : String(error));

describe('an accepted request', () => {
  it('has its record, its input and its job in Redis', async () => {
    const { record, known } = await rig.cases.submit(submission({ values: [7] }));
    expect(known).toBe(false);
    expect(record).toMatchObject({ status: 'queued', version: '1', rows: 1, route: { device_class: 'cpu' } });
    expect(await rig.queues.of(PARTITION).has(record.request_id)).toBe(true);
    const found = await stored(rig.store, record.request_id);
    expect(found?.document.units).toEqual([[1, 1, expect.any(String)]]);
    const [claim] = await rig.store.claimAndFetch([unitOf(found as never)], 'worker');
    expect(claim?.verdict).toBe('run');
    const { tensors } = decodeFrame((claim as { payload: Uint8Array }).payload);
    expect([...new Float32Array(new Uint8Array(tensors[0]?.bytes ?? []).buffer)]).toEqual([7, 7, 7, 7]);
  });

  it('is presented as it reads back', async () => {
    const { record } = await rig.cases.submit(
      submission({ metadata: { priority: 3, timeout_ms: 60_000, result_ttl_s: 10, tags: { a: 'b' } } }),
    );
    const { expires_at: now, notices: _, ...first } = record;
    const { expires_at: later, queue, notices, ...again } = await rig.cases.get(record.request_id);
    expect(again).toEqual(first);
    expect(queue).toEqual({ position: 0, rows_ahead: 0, eta_ms: null, eta_at: null });
    expect(notices).toEqual([
      'no live worker has model version 1 on cpu: it waits for one, or for a class that may take over',
    ]);
    expect(Date.parse(later)).toBeGreaterThanOrEqual(Date.parse(now));
    expect(Date.parse(record.deadline_at as string) - Date.parse(record.created_at)).toBe(60_000);
  });

  it('keeps a large input under a key of its own, without an end', async () => {
    const { record } = await rig.cases.submit(submission({ width: 10_000 }));
    const found = await stored(rig.store, record.request_id);
    expect(found?.document.inline).toBe(false);
    expect(await rig.redis.ttl(rig.keys.payload(record.request_id, found?.nonce as string, 0))).toBe(-1);
  });

  it('says so when no live worker serves its model', async () => {
    const { record } = await rig.cases.submit(submission());
    expect(record.notices).toEqual(['no live worker serves this model; it waits in the queue']);
  });

  it('joins like items into one run of units', async () => {
    const { record } = await rig.cases.submit(submission({ values: [1, 2, 3] }));
    const found = await stored(rig.store, record.request_id);
    expect(found?.document.units).toEqual([[3, 1, expect.any(String)]]);
    expect(record.items.total).toBe(3);
  });

  it('has the very job that Queue.add of BullMQ would have made', async () => {
    const { record } = await rig.cases.submit(submission());
    const ticket = ticketOf((await stored(rig.store, record.request_id)) as never);
    const prefix = queuePrefix(rig.keys.space.prefix);
    const jobKey = `${prefix}:${queueName(PARTITION)}:${record.request_id}`;
    const ours = await rig.redis.hgetall(jobKey);
    await rig.queues.of(PARTITION).remove(record.request_id);
    const queue = new Queue(queueName(PARTITION), { connection: rig.redis, prefix, skipMetasUpdate: true });
    await queue.add('request', ticket, {
      attempts: 20,
      backoff: { type: 'remuda' },
      removeOnComplete: true,
      removeOnFail: true,
      stackTraceLimit: 1,
      jobId: record.request_id,
      priority: 1,
    });
    const theirs = await rig.redis.hgetall(jobKey);
    const { timestamp: _, opts: ourOpts, ...rest } = ours;
    const { timestamp: __, opts: theirOpts, ...theirRest } = theirs;
    expect(rest).toEqual(theirRest);
    expect(JSON.parse(ourOpts as string)).toEqual(JSON.parse(theirOpts as string));
    await queue.close();
  });
});

describe('a request_id of the user', () => {
  it('is one request however often it is sent', async () => {
    const first = await rig.cases.submit(submission({ id: 'mine' }));
    const again = await rig.cases.submit(submission({ id: 'mine' }));
    expect(again.known).toBe(true);
    expect(again.record.created_at).toBe(first.record.created_at);
    expect((await rig.queues.of(PARTITION).depth()).waiting).toBe(1);
  });

  it('is answered with the ended record after the end', async () => {
    await rig.cases.submit(submission({ id: 'mine' }));
    await answer(rig.store, 'mine', ['ok']);
    await rig.queues.of(PARTITION).remove('mine');
    const again = await rig.cases.submit(submission({ id: 'mine' }));
    expect(again.record.status).toBe('succeeded');
    expect(await rig.queues.of(PARTITION).has('mine')).toBe(false);
  });

  it('gets its job back when the first call died before it', async () => {
    await rig.cases.submit(submission({ id: 'mine' }));
    await rig.queues.of(PARTITION).remove('mine');
    await rig.cases.submit(submission({ id: 'mine' }));
    expect(await rig.queues.of(PARTITION).has('mine')).toBe(true);
  });

  it('conflicts with other content, which changes nothing', async () => {
    await rig.cases.submit(submission({ id: 'mine', values: [1] }));
    await expect(rig.cases.submit(submission({ id: 'mine', values: [2] }))).rejects.toMatchObject({
      code: 'request_id_conflict',
    });
    expect((await stored(rig.store, 'mine'))?.status).toBe('queued');
    expect(rig.cases.unwithdrawn).toBe(0);
  });

  it('leaves no stray input behind when it was known', async () => {
    await rig.cases.submit(submission({ id: 'mine', width: 10_000 }));
    await rig.cases.submit(submission({ id: 'mine', width: 10_000 }));
    const [, found] = await rig.redis.scan('0', 'MATCH', `${rig.keys.tagOf('mine')}:p:*`, 'COUNT', 100_000);
    expect(found).toHaveLength(1);
  });
});

describe('many at once', () => {
  it('are accepted or refused each on its own, in order', async () => {
    const outcomes = await rig.cases.submitMany([
      submission({ values: [1] }),
      submission({ id: 'twice' }),
      submission({ model: 'modle' }),
      submission({ id: 'twice' }),
      submission({ id: 'twice', values: [9] }),
      submission({ values: [2] }),
    ]);
    expect(outcomes.map((one) => (one instanceof RemudaError ? one.code : one.known))).toEqual([
      false,
      false,
      'model_not_found',
      true,
      'request_id_conflict',
      false,
    ]);
    expect((await rig.queues.of(PARTITION).depth()).waiting).toBe(3);
    expect(rig.cases.unwithdrawn).toBe(0);
  });

  it('all have their jobs, a thousand in one call', async () => {
    const outcomes = await rig.cases.submitMany(Array.from({ length: 1_000 }, () => submission()));
    expect(outcomes.filter((one) => one instanceof RemudaError)).toEqual([]);
    expect((await rig.queues.of(PARTITION).depth()).waiting).toBe(1_000);
    expect(await rig.store.countOpen()).toBe(1_000);
  });
});

describe('a server that is full or stopping', () => {
  it('refuses above the depth of the queue, within one burst too, and stores nothing', async () => {
    const small = await setup({ maxQueueDepth: 3 });
    const settled = await Promise.allSettled(
      Array.from({ length: 5 }, () => small.cases.submit(submission())),
    );
    const refused = settled.filter((one) => one.status === 'rejected').map((one) => codeOf(one.reason));
    expect(refused).toEqual(['over_capacity', 'over_capacity']);
    expect(await small.store.countOpen()).toBe(3);
    await small.close();
  });

  it('says that it is stopping', async () => {
    rig.cases.drain();
    await expect(rig.cases.submit(submission())).rejects.toMatchObject({ code: 'shutting_down' });
  });
});

describe('a model that is not there', () => {
  it('is told with names that are near', async () => {
    await expect(rig.cases.signatureOf('modell')).rejects.toMatchObject({
      code: 'model_not_found',
      details: { suggestions: ['model'] },
    });
    await expect(rig.cases.signatureOf('model', '9')).rejects.toMatchObject({ code: 'version_not_found' });
  });
});
