/** What has not ended is counted by queue and tenant, whichever way it comes and ends. */

import { itemError } from '@remuda/core/errors';
import { lifeLog } from '@remuda/core/observability/events';
import { silentLogger } from '@remuda/core/observability/logger';
import { Sweeper } from '@remuda/core/requests/sweep-requests';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { partitionField, tenantField, type Usage } from '@remuda/core/store/usage';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answer, PARTITION, type Rig, setup, stored, submission } from './rig.js';

const QUEUE = partitionField('model', 'cpu', 'interactive');

let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

/** Requests, rows and bytes that are counted now, by field. */
async function counted(): Promise<Record<string, number[]>> {
  const usage = await rig.store.allUsage();
  return Object.fromEntries(
    [...usage].map(([field, { requests, rows, bytes }]: [string, Usage]) => [field, [requests, rows, bytes]]),
  );
}

const submit = async (options: Parameters<typeof submission>[0] = {}): Promise<string> =>
  (await rig.cases.submit(submission(options))).record.request_id;

describe('what has not ended', () => {
  it('is counted in requests, rows and stored bytes, by queue and by tenant', async () => {
    const one = await submit({ values: [1, 2], tenant: 'acme' });
    await submit({ tenant: 'other' });
    const sizes = await Promise.all(
      [0, 1].map(async (item) => {
        const { nonce } = (await stored(rig.store, one)) as StoredRecord;
        return rig.redis.strlen(rig.keys.payload(one, nonce, item));
      }),
    );
    const first = sizes.reduce((sum, size) => sum + size, 0);
    const all = await counted();
    expect(all[tenantField('acme')]).toEqual([1, 2, first]);
    expect(all[tenantField('other')]).toEqual([1, 1, expect.any(Number)]);
    const second = all[tenantField('other')]?.[2] as number;
    expect(all[QUEUE]).toEqual([2, 3, first + second]);
  });

  it('is nothing any more when everything has ended, whichever way', async () => {
    await answer(rig.store, await submit(), ['ok']);
    await answer(rig.store, await submit({ values: [1, 2] }), ['ok', 'error']);
    await rig.cases.cancel(await submit({ tenant: 'acme' }));
    await rig.store.end(await submit(), 'failed', itemError('internal', 'no'));
    const late = await submit({ metadata: { priority: 5, timeout_ms: 1 } });
    await rig.store.end(late, 'expired', itemError('deadline_exceeded', 'late'), { guard: 'queued' });
    const withdrawn = await submit({ id: 'refused' });
    await rig.store.withdraw(withdrawn, ((await stored(rig.store, withdrawn)) as StoredRecord).nonce);
    expect(await counted()).toEqual({});
  });

  it('is counted once, however often a request is sent and its end is written', async () => {
    await submit({ id: 'mine' });
    await submit({ id: 'mine' });
    expect((await counted())[QUEUE]?.[0]).toBe(1);
    await submit();
    await answer(rig.store, 'mine', ['ok']);
    await answer(rig.store, 'mine', ['ok']);
    await rig.store.withdraw('mine', ((await stored(rig.store, 'mine')) as StoredRecord).nonce);
    expect((await counted())[QUEUE]?.[0]).toBe(1);
  });

  it('goes with a request that is moved to another class', async () => {
    const id = await submit({ tenant: 'acme' });
    const record = (await stored(rig.store, id)) as StoredRecord;
    const before = await counted();
    await rig.store.reroute(record, { ...record.document.route, device_class: 'cuda' }, 0, false);
    const cuda = partitionField('model', 'cuda', 'interactive');
    expect(await counted()).toEqual({ [cuda]: before[QUEUE], [tenantField('acme')]: before[QUEUE] });
    await answer(rig.store, id, ['ok']);
    await rig.cases.cancel(id).catch(() => {});
    await rig.store.end(id, 'cancelled', itemError('cancelled', 'no'));
    expect(await counted()).toEqual({});
  });

  it('has an end too where the API died between record and job', async () => {
    const id = await submit();
    await rig.queues.of(PARTITION).remove(id);
    expect((await counted())[QUEUE]?.[0]).toBe(1);
    const life = lifeLog(silentLogger);
    const sweeper = new Sweeper({ ...rig, life, onError: () => {}, lostAfterMs: 0 });
    await sweeper.turn();
    await sweeper.stop();
    expect(await rig.queues.of(PARTITION).has(id)).toBe(true);
    await answer(rig.store, id, ['ok']);
    expect(await counted()).toEqual({});
  });

  it('is kept by shard on a Cluster, and told as a whole', async () => {
    const spread = await setup({ shards: 4 });
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => (await spread.cases.submit(submission())).record.request_id),
    );
    expect((await spread.store.allUsage()).get(QUEUE)?.requests).toBe(20);
    await Promise.all(ids.map((id) => spread.cases.cancel(id)));
    expect((await spread.store.allUsage()).size).toBe(0);
    await spread.close();
  });
});

describe('counters that have gone wrong', () => {
  it('are left alone while they are right', async () => {
    await submit();
    expect(await rig.store.recountUsage(0)).toBe('right');
  });

  it('are counted anew from what has not ended', async () => {
    await submit({ tenant: 'acme' });
    await submit({ values: [1, 2] });
    const right = await counted();
    await rig.redis.hset(rig.keys.usage(0), QUEUE, '9 9 9 9 9');
    await rig.redis.hset(rig.keys.usage(0), tenantField('gone'), '1 1 1 0 0');
    expect(await rig.store.recountUsage(0)).toBe('mended');
    expect(await counted()).toEqual(right);
    expect(await rig.store.recountUsage(0)).toBe('right');
  });

  it('are put right by the sweeper', async () => {
    await submit();
    const right = await counted();
    await rig.redis.del(rig.keys.usage(0));
    const sweeper = new Sweeper({ ...rig, life: lifeLog(silentLogger), onError: () => {} });
    await sweeper.turn();
    await sweeper.stop();
    expect(await counted()).toEqual(right);
    expect(await rig.metrics.text()).toContain('remuda_repairs_total{kind="usage_recounted"} 1');
  });

  it('do not count what a build accepted that did not count, and bear its end', async () => {
    const id = await submit();
    await rig.redis.hdel(rig.keys.record(id), 'use');
    await rig.redis.del(rig.keys.usage(0));
    await rig.store.recountUsage(0);
    expect(await counted()).toEqual({});
    await answer(rig.store, id, ['ok']);
    expect(await counted()).toEqual({});
  });

  it('wait for a shorter list where a recount would hold Redis up', async () => {
    await rig.redis.zadd(rig.keys.open(0), ...Array.from({ length: 5_001 }, (_, i) => [i, `id${i}`]).flat());
    expect(await rig.store.recountUsage(0)).toBe('busy');
  });
});
