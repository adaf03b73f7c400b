/**
 * Whatever happens to requests, in whatever order, with ids that are used again: once all have ended, nothing is counted
 * any more, no list names one, and no input is left but those of dead letters, whose bytes add up.
 */
import { itemError } from '@remuda/core/errors';
import { lifeLog } from '@remuda/core/observability/events';
import { silentLogger } from '@remuda/core/observability/logger';
import { Coalescing } from '@remuda/core/requests/coalescing';
import { Sweeper } from '@remuda/core/requests/sweep-requests';
import { CacheStore } from '@remuda/core/store/cache-store';
import { LetterStore } from '@remuda/core/store/letter-store';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { isTerminal } from '@remuda/schemas';
import { afterEach, expect, it } from 'vitest';
import { outcome, passDeadline, type Rig, setup, stored, submission, tensor, unitOf, until } from './rig.js';

const STEPS = 400;
const IDS = 8;

let rig: Rig;
afterEach(() => rig.close());

/** The same numbers for the same seed (mulberry32). */
function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % sides;
  };
}

function sweeperOf({ store, queues, redis, metrics, keys }: Rig): Sweeper {
  const clock = { now: () => Date.now() + 60_000, after: () => () => {} };
  const life = lifeLog(silentLogger);
  const cache = new CacheStore(redis, keys);
  const coalescing = new Coalescing({ store, cache, queues, metrics, life, clock, ring: () => {} });
  return new Sweeper({ redis, store, queues, metrics, life, clock, coalescing, onError: () => {} });
}

/** One thing that may happen to a request. */
function happenings(
  roll: (sides: number) => number,
): ((id: string, record: StoredRecord) => Promise<unknown>)[] {
  const { store } = rig;
  const codes = ['runner_crashed', 'item_rejected', 'inference_failed'] as const;
  const run = async (_: string, record: StoredRecord): Promise<void> => {
    // It has no job.
    if (record.follows !== null) return;
    const token = 1 + roll(3);
    const units = Array.from({ length: record.items }, (_, item) => unitOf(record, item, token));
    const some = units.filter(() => roll(3) > 0);
    if (some.length === 0) return;
    await store.claimAndFetch(some, 'worker');
    const writes = some.map((unit) => {
      const kind = (['ok', 'ok', 'error', 'expired'] as const)[roll(4)] ?? 'ok';
      if (kind !== 'error') return outcome(unit, kind, kind === 'ok' ? [tensor('y', 1)] : []);
      return { ...outcome(unit, kind), error: itemError(codes[roll(3)] ?? 'internal', 'no') };
    });
    await store.writeOutcomes(writes);
  };
  const route = (deviceClass: string, record: StoredRecord) => ({
    ...record.document.route,
    device_class: deviceClass,
  });
  return [
    run,
    run,
    run,
    (id) => store.end(id, 'cancelled', itemError('cancelled', 'no')),
    (id) => store.end(id, 'failed', itemError('worker_lost', 'no')),
    async (id, record) => {
      if (isTerminal(record.status)) return;
      await passDeadline(rig, id, roll(2) === 0 ? 'start' : 'finish');
      if (roll(2) === 0) await store.expire(id);
    },
    async (id, record) => {
      const nonces = ((await rig.redis.hget(rig.keys.record(id), 'acc')) ?? '').split(' ');
      await store.withdraw(id, nonces[roll(nonces.length)] ?? record.nonce);
    },
    (_, record) => store.reroute(record, route(roll(2) === 0 ? 'cuda' : 'cpu', record), 3, roll(2) === 0),
    // Its retention is over.
    async (id, record) => {
      if (isTerminal(record.status)) await rig.redis.del(rig.keys.record(id));
    },
  ];
}

async function endAll(ids: readonly string[]): Promise<void> {
  const sweeper = sweeperOf(rig);
  await until('all have ended', async () => {
    await sweeper.turn();
    for (const record of await rig.store.read(ids))
      if (record && !isTerminal(record.status) && record.follows === null)
        await rig.store.end(record.requestId, 'cancelled', itemError('cancelled', 'no'));
    return (await rig.store.countOpen()) === 0;
  });
  await sweeper.stop();
  for (const shard of rig.keys.allShards())
    await until('ends are dealt with', async () => (await rig.redis.zcard(rig.keys.after(shard))) === 0);
}

for (const [seed, cached] of [
  [1, false],
  [2, true],
  [3, true],
] as const) {
  it(`nothing is left of what has ended (seed ${seed}${cached ? ', with a result cache' : ''})`, async () => {
    const config = cached ? { result_cache: { ttl_s: 600, max_bytes: 1_000, shared: false } } : {};
    rig = await setup({ shards: 2, config });
    const roll = dice(seed);
    const ids = Array.from({ length: IDS }, (_, n) => `id-${n}`);
    const happens = happenings(roll);
    for (let step = 0; step < STEPS; step++) {
      const id = ids[roll(IDS)] as string;
      const record = await stored(rig.store, id);
      const happening = happens[roll(happens.length)];
      if (record && happening && roll(4) > 0) await happening(id, record);
      else {
        const values = Array.from({ length: 1 + roll(2) }, () => roll(2));
        const options = { id, values, width: roll(3) === 0 ? 4_096 : 4, tenant: `tenant-${roll(2)}` };
        await rig.cases.submit(submission(options)).catch(({ code }: { code: string }) => {
          expect(code).toBe('request_id_conflict');
        });
      }
    }
    await endAll(ids);
    expect(Object.fromEntries(await rig.store.allUsage())).toEqual({});
    // Not because the sweeper has counted anew.
    expect(await rig.metrics.text()).not.toContain('kind="usage_recounted"');
    for (const shard of rig.keys.allShards()) expect(await rig.redis.zcard(rig.keys.due(shard))).toBe(0);
    const letters = new LetterStore(rig.redis, rig.keys);
    const kept = await Promise.all((await letters.list(null, 100)).map(({ id }) => letters.read(id)));
    let bytes = 0;
    const inputs = new Set<string>();
    for (const letter of kept) {
      if (!letter) throw new Error('a letter that is listed is not there');
      bytes += letter.inputBytes;
      const frames = await letters.inputs(letter);
      expect(frames.reduce((sum, frame) => sum + (frame?.length ?? 0), 0)).toBe(letter.inputBytes);
      for (const { item } of letter.errors)
        inputs.add(rig.keys.letterPayload(letter.requestId, letter.nonce, item));
    }
    expect(await letters.totals()).toEqual({ letters: kept.length, bytes });
    const keys = await rig.redis.keys(`${rig.keys.space.prefix}:*`);
    expect(keys.filter((key) => /:p:/.test(key))).toEqual([]);
    expect(keys.filter((key) => /:dp:/.test(key) && !inputs.has(key))).toEqual([]);
    expect(keys.filter((key) => /:d:/.test(key)).length).toBe(kept.length);
  });
}
