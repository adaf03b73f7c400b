/** Copies for a shadow version over a real Redis: the test plays the worker that runs them. */
import { systemClock } from '@remuda/core/lifecycle/clock';
import { ShadowComparer } from '@remuda/core/models/shadow-comparer';
import { isShadowId, shadowIdOf } from '@remuda/core/models/shadow-id';
import { readShadowReport } from '@remuda/core/models/shadow-report';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import { HarnessConfig } from '@remuda/schemas';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  outcome,
  PARTITION,
  type Rig,
  setup,
  signature,
  stored,
  submission,
  tensor,
  unitOf,
  until,
} from '../requests/rig.js';

let rig: Rig;
let comparer: ShadowComparer;
beforeEach(async () => {
  rig = await setup();
  const { redis, store, metrics, cases } = rig;
  comparer = new ShadowComparer({
    ...{ redis, store, metrics, clock: systemClock },
    deployments: cases.deployments,
    onError: (error) => {
      throw error;
    },
  });
  await publishSignature(
    rig.redis,
    rig.keys,
    signature({ version: '2', digest: 'digest-2' }),
    HarnessConfig.parse({ harness: 'onnx', version_policy: { only: [1] } }),
  );
  await rig.cases.deployments.store.edit({
    model: 'model',
    who: 'test',
    what: 'shadow_set',
    detail: {},
    change: (current) => ({
      ...current,
      aliases: { stable: '1' },
      shadow: { version: '2', sample: 1 },
    }),
  });
  await rig.cases.deployments.refresh();
});
afterEach(async () => {
  await rig.close();
});

const BULK = { ...PARTITION, lane: 'bulk' as const };
const copies = async (what: string) => {
  const line = new RegExp(`remuda_shadow_copies_total\\{model="model",outcome="${what}"\\} (\\d+)`);
  return Number(line.exec(await rig.metrics.text())?.[1] ?? 0);
};

async function submit(): Promise<string> {
  const { record } = await rig.cases.submit(submission({ metadata: { priority: 3 } }));
  expect(record.version).toBe('1');
  const id = record.request_id;
  await until('it was copied', async () => (await stored(rig.store, shadowIdOf(id))) !== null);
  return id;
}

async function answerWith(id: string, value: number | null, run_ms = 10): Promise<void> {
  const record = await stored(rig.store, id);
  if (!record) throw new Error(`no record of ${id}`);
  const unit = unitOf(record);
  await rig.store.claimAndFetch([unit], 'worker');
  const metrics = { run_ms } as never;
  const write =
    value === null ? outcome(unit, 'error') : outcome(unit, 'ok', [tensor('y', value)], { metrics });
  await rig.store.writeOutcomes([write]);
}

const report = () => readShadowReport(rig, rig.cases.deployments.of('model'));

it('a copy is a request of its own, on the bulk lane, that goes away by itself', async () => {
  const id = await submit();
  const copy = await stored(rig.store, shadowIdOf(id));
  expect(copy).toMatchObject({
    resultTtlMs: 120_000,
    document: { version: '2', shadowOf: id, route: { lane: 'bulk' }, metadata: { priority: 9 } },
  });
  expect(copy?.deadline).toBeGreaterThan(0);
  await until('its job is there', () => rig.queues.of(BULK).has(shadowIdOf(id)));
  expect(await copies('submitted')).toBe(1);
});

it('nobody sees a copy, and it counts as no request', async () => {
  const id = await submit();
  const { requests } = await rig.cases.list({ limit: 10 });
  expect(requests.map(({ request_id }) => request_id)).toEqual([id]);
  await expect(rig.cases.get(shadowIdOf(id))).rejects.toMatchObject({ code: 'request_not_found' });
  await expect(rig.cases.result(shadowIdOf(id))).rejects.toMatchObject({ code: 'request_not_found' });
  const accepted = (await rig.metrics.text())
    .split('\n')
    .filter((line) => /^remuda_accepted_total/.test(line));
  expect(accepted).toEqual([expect.stringMatching(/lane="interactive"\} 1$/)]);
});

it('a request for the shadow version itself is not copied', async () => {
  const known = () =>
    rig.cases.signatureOf('model', '2').then(
      () => true,
      () => false,
    );
  await until('the API knows of version 2', known);
  await rig.cases.submit({ ...submission(), options: { version: '2' } });
  const id = await submit();
  const ids = (await rig.store.list(null, 10)).map((entry) => entry.id).filter(isShadowId);
  expect(ids).toEqual([shadowIdOf(id)]);
});

it('compares when both have ended, and reports what differs', async () => {
  const ids = [await submit(), await submit(), await submit()];
  const [same = '', other = '', fails = ''] = ids;
  for (const [id, value] of [
    [same, 1],
    [other, 1.5],
    [fails, null],
  ] as const) {
    await answerWith(shadowIdOf(id), value, 30);
    comparer.offer('model', shadowIdOf(id));
  }
  await comparer.turn();
  expect(await report(), 'the primaries have not ended').toBeNull();
  for (const id of ids) await answerWith(id, 1);
  await comparer.turn();
  const found = await report();
  expect(found).toMatchObject({
    compared: 2,
    shadow_errors: 1,
    outputs: [
      { output: 'y', compared: 2, incomparable: 0, max_abs_error: 0.5, max_rel_error: 0.5, changed_top1: 0 },
    ],
    worst: [{ request_id: other, item: 0, output: 'y', max_abs_error: 0.5 }],
  });
  expect((found?.shadow.run_p95_s as number) / (found?.primary.run_p95_s as number)).toBeGreaterThan(2.7);
  expect(await copies('compared')).toBe(3);
});

it('forgets a copy whose primary is gone', async () => {
  const id = await submit();
  await answerWith(shadowIdOf(id), 1);
  await rig.redis.del(rig.keys.record(id));
  comparer.offer('model', shadowIdOf(id));
  await comparer.turn();
  expect(await report()).toBeNull();
  expect(await copies('not_compared')).toBe(1);
});

it('copies are skipped when many wait', async () => {
  const waiting = Array.from({ length: 201 }, (_, i) => ({
    ...{ requestId: `waits-${i}`, nonce: 'n', version: '2', traceId: 't', acceptedAt: 1, deadline: 0 },
    ...{ priority: 9, inline: true, units: [], tokenBase: 0 },
  }));
  await rig.queues.of(BULK).addMany(waiting);
  const { record } = await rig.cases.submit(submission());
  await until('it was skipped', async () => (await copies('skipped')) === 1);
  expect(await stored(rig.store, shadowIdOf(record.request_id))).toBeNull();
});
