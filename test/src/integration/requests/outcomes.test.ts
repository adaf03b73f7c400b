/** Outcomes behind the fence: who may write, when a request ends and as what, and what its result then says. */
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { answer, outcome, type Rig, setup, stored, submission, tensor, unitOf } from './rig.js';

for (const shards of [1, 4]) {
  describe(`with ${shards} shard${shards === 1 ? '' : 's'}`, () => {
    let rig: Rig;
    beforeEach(async () => {
      rig = await setup({ shards });
    });
    afterEach(() => rig.close());

    async function accepted(values: number[] = [1]): Promise<StoredRecord> {
      const { record } = await rig.cases.submit(submission({ values }));
      return (await stored(rig.store, record.request_id)) as StoredRecord;
    }
    const verdictsOf = async (...writes: Parameters<typeof outcome>[]) =>
      (await rig.store.writeOutcomes(writes.map((write) => outcome(...write)))).map(({ verdict }) => verdict);
    const claim = async (record: StoredRecord, token: number) =>
      (await rig.store.claimAndFetch([unitOf(record, 0, token)], `worker-${token}`))[0]?.verdict;

    it('a newer attempt takes over, and the older one can neither claim nor write', async () => {
      const record = await accepted();
      expect(await claim(record, 1)).toBe('run');
      expect(await claim(record, 2)).toBe('run');
      expect(await claim(record, 1)).toBe('fenced');
      expect(await verdictsOf([unitOf(record, 0, 1), 'ok', [tensor('y', 1)]])).toEqual(['fenced']);
      expect((await stored(rig.store, record.requestId))?.status).toBe('running');
      expect(await verdictsOf([unitOf(record, 0, 2), 'ok', [tensor('y', 2)]])).toEqual(['written']);
      const result = await rig.cases.result(record.requestId);
      expect(new Float32Array(new Uint8Array(result?.items[0]?.outputs?.[0]?.bytes ?? []).buffer)[0]).toBe(2);
    });

    it('an ended request never changes', async () => {
      const record = await accepted();
      await claim(record, 1);
      await verdictsOf([unitOf(record, 0, 1), 'ok', [tensor('y', 1)]]);
      expect(await claim(record, 2)).toBe('already_terminal');
      await rig.store.end(record.requestId, 'failed', { code: 'internal', message: '', retryable: true });
      await verdictsOf([unitOf(record, 0, 2), 'error']);
      expect(await rig.cases.get(record.requestId)).toMatchObject({ status: 'succeeded', error: null });
    });

    it('the answer to a cancelled request is thrown away', async () => {
      const record = await accepted();
      await claim(record, 1);
      await rig.cases.cancel(record.requestId);
      expect(await verdictsOf([unitOf(record, 0, 1), 'ok', [tensor('y', 1)]])).toEqual(['already_terminal']);
      expect((await rig.cases.result(record.requestId))?.items[0]).toMatchObject({
        status: 'cancelled',
        outputs: null,
      });
    });

    it('another acceptance of the id is not touched by a job of the former one', async () => {
      const record = await accepted();
      const former = { ...record, nonce: 'former' };
      expect(await claim(former, 1)).toBe('record_missing');
      expect(await verdictsOf([unitOf(former), 'ok']), 'write').toEqual(['record_missing']);
    });

    const ends = [
      [['ok', 'ok'], 'succeeded', 2, 0],
      [['ok', 'error'], 'partial', 1, 1],
      [['ok', 'expired'], 'partial', 1, 1],
      [['error', 'expired'], 'failed', 0, 2],
      [['error', 'error'], 'failed', 0, 2],
      [['expired', 'expired'], 'expired', 0, 2],
    ] as const;
    for (const [kinds, status, succeeded, failed] of ends) {
      it(`items that end as ${kinds.join(' and ')} make the request ${status}`, async () => {
        const { requestId } = await accepted([1, 2]);
        await answer(rig.store, requestId, [...kinds]);
        expect(await rig.cases.get(requestId)).toMatchObject({
          status,
          items: { total: 2, succeeded, failed },
        });
        const result = await rig.cases.result(requestId);
        const names = { ok: 'succeeded', error: 'failed', expired: 'expired' };
        expect(result?.items.map((item) => item.status)).toEqual(kinds.map((kind) => names[kind]));
        expect(await rig.store.countOpen()).toBe(0);
      });
    }

    it('a request with an item still missing goes on, and shows how far it is', async () => {
      const record = await accepted([1, 2, 3]);
      await claim(record, 1);
      await verdictsOf([unitOf(record, 0), 'ok', [tensor('y', 1)]], [unitOf(record, 2), 'error']);
      expect(await rig.cases.get(record.requestId)).toMatchObject({
        status: 'running',
        items: { total: 3, succeeded: 1, failed: 1 },
      });
      expect(await rig.cases.result(record.requestId)).toBeNull();
    });

    it('items that a cancelled request did not get to share its fate; those that were done stay', async () => {
      const record = await accepted([1, 2]);
      await claim(record, 1);
      await verdictsOf([unitOf(record, 0), 'ok', [tensor('y', 1)]]);
      await rig.cases.cancel(record.requestId);
      const result = await rig.cases.result(record.requestId);
      expect(result?.items.map(({ status }) => status)).toEqual(['succeeded', 'cancelled']);
      expect(result?.items[1]?.error?.code).toBe('cancelled');
    });

    it('large outcomes come back whole, and end with the record', async () => {
      const record = await accepted([1, 2]);
      const large = tensor('y', 3, 1, 50_000);
      await claim(record, 1);
      await verdictsOf([unitOf(record, 0), 'ok', [large]], [unitOf(record, 1), 'ok', [tensor('y', 4)]]);
      const result = await rig.cases.result(record.requestId);
      expect(Buffer.compare(result?.items[0]?.outputs?.[0]?.bytes ?? Buffer.alloc(0), large.bytes)).toBe(0);
      const key = rig.keys.largeResult(record.requestId, record.nonce, 0, 1);
      expect(await rig.redis.pttl(key)).toBeLessThanOrEqual(3_600_000);
      expect(await rig.redis.pttl(rig.keys.record(record.requestId))).toBeLessThanOrEqual(3_600_000);
    });

    it('inputs are gone once their outcome is written', async () => {
      const { record } = await rig.cases.submit(submission({ width: 10_000 }));
      const found = (await stored(rig.store, record.request_id)) as StoredRecord;
      const key = rig.keys.payload(found.requestId, found.nonce, 0);
      expect(await rig.redis.exists(key)).toBe(1);
      await answer(rig.store, record.request_id, ['ok']);
      expect(await rig.redis.exists(key)).toBe(0);
    });
  });
}
