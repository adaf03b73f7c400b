/** Canary and shadow with real workers: two versions of one model, of which one fails or answers otherwise. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AdminModel, ModelEvent } from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../integration/requests/rig.js';
import { Fleet } from '../support/fleet.js';
import { testModels } from '../support/test-models.js';

let folder: string;
let fleet: Fleet;

beforeAll(async () => {
  const tiny = await testModels();
  folder = mkdtempSync(join(tmpdir(), 'remuda-canary-'));
  layModel('twin', [join(tiny, 'identity-4'), join(tiny, 'fail-on-mark')]);
  layModel('shade', [join(tiny, 'identity-fp32'), join(tiny, 'variable-length')]);
  fleet = await Fleet.start({ models: folder, workers: 2 });
  for (const model of ['twin', 'shade']) {
    await until(
      `${model} is ready in both versions`,
      async () => {
        const { convergence } = await describeModel(model);
        return convergence.done;
      },
      60_000,
    );
  }
}, 120_000);
afterAll(async () => {
  await fleet?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function layModel(name: string, versions: string[]): void {
  versions.forEach((source, i) => {
    mkdirSync(join(folder, name, String(i + 1)), { recursive: true });
    cpSync(join(source, '1/model.onnx'), join(folder, name, String(i + 1), 'model.onnx'));
  });
  writeFileSync(join(folder, name, 'model.yaml'), 'harness: onnx\nversion_policy: all\nmax_batch_size: 8\n');
}

async function describeModel(model: string): Promise<AdminModel> {
  const { status, body } = await fleet.api.get<AdminModel>(`/v1/admin/models/${model}`);
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body;
}

async function put(path: string, body: unknown): Promise<void> {
  const answer = await fleet.api.call('PUT', `/v1/admin/models/${path}`, {
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  });
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
}

const history = async (model: string) =>
  (await fleet.api.get<{ events: ModelEvent[] }>(`/v1/admin/models/${model}/history`)).body.events;

const input = (first: number, sticky_key?: string) => ({
  inputs: { x: { datatype: 'FP32', shape: [1, 4], data: [first, 1, 2, 3] } },
  ...(sticky_key && { metadata: { sticky_key } }),
});

describe('a canary', () => {
  it('gets its share; a key stays with its version', async () => {
    await put('twin/aliases/stable', { version: '1' });
    await put('twin/split', { stable: 'stable', weights: { stable: 50, '2': 50 }, rollback: null });
    const versionOf = async (key?: string) => (await fleet.api.run('twin', input(1, key))).version;
    const spread = await Promise.all(Array.from({ length: 60 }, () => versionOf()));
    expect(new Set(spread)).toEqual(new Set(['1', '2']));
    const keys = Array.from({ length: 12 }, (_, i) => `user-${i}`);
    const first = await Promise.all(keys.map(versionOf));
    expect(new Set(first)).toEqual(new Set(['1', '2']));
    expect(await Promise.all(keys.map(versionOf))).toEqual(first);
  });

  it('that fails where the stable version does not is taken back by itself, with the numbers', async () => {
    const rollback = { min_requests: 40, max_error_rate_increase: 0.02, max_p95_ratio: 1_000 };
    await put('twin/split', { stable: 'stable', weights: { stable: 50, '2': 50 }, rollback });
    // The canary fails on the marked item. The one behind it runs in the same batch and succeeds, so that no batch
    // fails as a whole: it is the errors that are judged, and never the breaker.
    const half = { items: [input(666), input(1)].map(({ inputs }) => ({ inputs })) };
    await until(
      'it was taken back',
      async () => {
        await Promise.all(Array.from({ length: 12 }, () => fleet.api.run('twin', half)));
        return (await history('twin')).some(({ what }) => what === 'rolled_back');
      },
      60_000,
    );
    const event = (await history('twin')).find(({ what }) => what === 'rolled_back');
    expect(event).toMatchObject({
      who: 'fleet',
      detail: { canary: '2', version: '2', by: 'errors', error_rate: { stable: 0, canary: 0.5 } },
    });
    const { deployment } = await describeModel('twin');
    expect(deployment.split?.weights).toEqual({ stable: 100 });
    await until('everybody gets the stable version', async () => {
      const results = await Promise.all(Array.from({ length: 12 }, () => fleet.api.run('twin', input(666))));
      return results.every(({ version, status }) => version === '1' && status === 'succeeded');
    });
  });
});

describe('a shadow', () => {
  it('runs copies that nobody sees, and is compared with what was returned', async () => {
    await put('shade/aliases/stable', { version: '1' });
    await put('shade/shadow', { version: '2', sample: 1 });
    await until(
      'version 1 is the default',
      async () => (await describeModel('shade')).default_version === '1',
    );
    await until(
      'something was compared',
      async () => {
        const { version, items, outputs } = (await fleet.api.run('shade', input(5))) as never;
        expect({ version, items }).toMatchObject({ version: '1' });
        expect(JSON.stringify(outputs)).toContain('[5,1,2,3]');
        return ((await describeModel('shade')).shadow_report?.compared as number) >= 5;
      },
      60_000,
    );
    const report = (await describeModel('shade')).shadow_report;
    // It doubles.
    expect(report).toMatchObject({
      version: '2',
      shadow_errors: 0,
      outputs: [{ output: 'y', incomparable: 0, max_abs_error: 5, max_rel_error: 1, changed_top1: 0 }],
    });
    const { body } = await fleet.api.get<{ requests: { request_id: string }[] }>('/v1/requests?limit=100');
    expect(body.requests.length).toBeGreaterThan(0);
    expect(body.requests.filter(({ request_id }) => request_id.startsWith('shadow'))).toEqual([]);
    const one = body.requests[0]?.request_id;
    expect((await fleet.api.get(`/v1/requests/shadow.${one}`)).status).toBeGreaterThanOrEqual(400);
  });
});

it('none of the accepted requests was lost', async () => {
  const ended = await fleet.api.settle(30);
  expect(ended.size).toBe(fleet.api.accepted.size);
});
