/** Where a request that waits stands, and the decision that brought it there. */
import { publishSignature } from '@remuda/core/requests/published-signatures';
import { HarnessConfig } from '@remuda/schemas';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { alive } from './fleet-facts.js';
import { answer, type Rig, setup, signature, submission, until } from './rig.js';

let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

const measured = { seconds_per_row: 0.1, run_seconds: 0.3 };
const submit = async (values = [1], priority = 5) =>
  (await rig.cases.submit(submission({ values, metadata: { priority } }))).record.request_id;

it('gives place, rows ahead and the expected end of a request that waits', async () => {
  await alive(rig, 'w1', [{ ...measured, backlog_rows: 5 }]);
  for (let i = 0; i < 4; i++) await submit();
  const { queue } = await rig.cases.get(await submit());
  expect(queue).toMatchObject({ position: 4, rows_ahead: 9, eta_ms: 1_200 });
  expect(Math.abs(Date.parse(queue?.eta_at as string) - Date.now() - 1_200)).toBeLessThan(1_000);
});

it('counts by priority, and what several workers do side by side', async () => {
  await alive(rig, 'w1', [measured]);
  await alive(rig, 'w2', [measured]);
  for (let i = 0; i < 3; i++) await submit();
  const urgent = await submit([1], 0);
  expect((await rig.cases.get(urgent)).queue).toMatchObject({ position: 0, rows_ahead: 0, eta_ms: 300 });
  expect((await rig.cases.get(await submit())).queue).toMatchObject({ position: 4, eta_ms: 500 });
});

it('gives no time while nothing is measured, or no worker is there', async () => {
  const id = await submit();
  expect((await rig.cases.get(id)).queue).toEqual({ position: 0, rows_ahead: 0, eta_ms: null, eta_at: null });
  await alive(rig, 'w1', [{}]);
  expect((await rig.cases.get(id)).queue?.eta_ms).toBeNull();
});

it('says nothing of a queue once the request has ended', async () => {
  const id = await submit();
  await answer(rig.store, id, ['ok']);
  expect((await rig.cases.get(id)).queue).toBeUndefined();
});

it('keeps the decision with the request: candidates, facts, reasons', async () => {
  const affinity = { affinity: ['cuda' as const, 'cpu' as const] };
  await publishSignature(rig.redis, rig.keys, signature(affinity), HarnessConfig.parse({ harness: 'onnx' }));
  await alive(rig, 'gpu', [{ device: 'cuda:0', seconds_per_row: 0.1, run_seconds: 0.1, backlog_rows: 100 }]);
  await alive(rig, 'cpu', [{ seconds_per_row: 0.5, run_seconds: 0.5 }]);
  await until(
    'the API knows both classes',
    async () => (await rig.cases.signatureOf('model')).affinity.length === 2,
  );
  const { route } = await rig.cases.get(await submit());
  expect(route).toMatchObject({
    device_class: 'cpu',
    reasons: ['the model prefers cuda, then cpu', 'cuda would take 10.1 s, cpu 0.5 s'],
    candidates: [
      { device_class: 'cuda', workers: 1, rows_ahead: 100, seconds_per_row: 0.1, expected_s: 10.1 },
      {
        device_class: 'cpu',
        workers: 1,
        rows_ahead: 0,
        seconds_per_row: 0.5,
        expected_s: 0.5,
        verdict: 'chosen',
      },
    ],
  });
  expect(route.facts_age_ms).toBeLessThan(5_000);
});

it('says of a request whose version was unloaded by name that it waits, and for what', async () => {
  await alive(rig, 'w1', [{ state: 'unloaded' }]);
  const id = await submit();
  const { deployments } = rig.cases;
  const edit = (loads: Record<string, 'loaded' | 'unloaded'>) =>
    deployments.store.edit({
      ...{ model: 'model', who: 'ann', what: 'changed', detail: {} },
      change: (now) => ({ ...now, loads }),
    });
  await edit({ 1: 'unloaded' });
  await deployments.refresh();
  expect((await rig.cases.get(id)).notices).toEqual([
    'model version 1 was unloaded by name (last change by ann): it waits until it is loaded again, as by remuda models load model 1',
  ]);
  await edit({ 1: 'loaded' });
  await deployments.refresh();
  expect((await rig.cases.get(id)).notices.join()).not.toContain('unloaded by name');
});

it('says of a version that is loaded by name only that it waits for that', async () => {
  await alive(rig, 'w1', [{ state: 'unloaded', load_mode: 'explicit' }]);
  const id = await submit();
  await rig.cases.fleetView.refresh();
  expect((await rig.cases.get(id)).notices).toEqual([
    'model version 1 is loaded by name only: it waits for remuda models load model 1',
  ]);
});
