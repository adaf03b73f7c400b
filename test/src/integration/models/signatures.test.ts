/** What workers publish of versions that they have not loaded: read when an API asks, kept as their settings are. */

import { FleetView } from '@remuda/core/fleet/fleet-view';
import type { inspectModel } from '@remuda/core/inference/inspect-model';
import { Catalogue } from '@remuda/core/requests/catalogue';
import { type Published, publishSignature, readPublished } from '@remuda/core/requests/published-signatures';
import type { ModelSignature } from '@remuda/schemas';
import { HarnessConfig } from '@remuda/schemas';
import { afterEach, expect, it } from 'vitest';
import { LightFleet, modelFiles } from '../../support/light-fleet.js';

let fleet: LightFleet;
afterEach(() => fleet.stop());

const lazy = 'load_mode: on_demand';
const signatureOf = (source: Parameters<typeof inspectModel>[0]): ModelSignature => ({
  ...{ model: source.model, version: source.version, digest: source.digest, harness: 'onnx' },
  ...{ inputs: [], outputs: [], batchable: true, max_batch_size: 8, padding: [] },
  ...{ parameters_schema: null, streams: false, affinity: ['cpu'] },
});

/** An API that sees no files. */
async function catalogue(wishMs?: number): Promise<Catalogue> {
  const { redis, keys } = fleet;
  const onError = (error: Error): void => {
    throw error;
  };
  const view = new FleetView({ redis, keys, onError });
  await view.refresh();
  const options = { redis, keys, fleet: view, repository: null, onError, ...(wishMs ? { wishMs } : {}) };
  const made = new Catalogue(options);
  await made.refresh();
  return made;
}

async function untilPublished(holds: (published: Published) => boolean): Promise<Published> {
  return expect
    .poll(async () => (await readPublished(fleet.redis, fleet.keys, [{ model: 'm', version: '1' }]))[0])
    .toSatisfy((published: Published | null) => published !== null && holds(published))
    .then(async () => {
      const [published] = await readPublished(fleet.redis, fleet.keys, [{ model: 'm', version: '1' }]);
      return published as Published;
    });
}

it('are read by one worker when an API asks, and not before', async () => {
  fleet = new LightFleet({ ...modelFiles('m', [1], lazy), ...modelFiles('never', [1], lazy) });
  const inspected: string[] = [];
  const inspect = async (source: Parameters<typeof inspectModel>[0]): Promise<ModelSignature> => {
    inspected.push(source.modelId);
    return signatureOf(source);
  };
  await Promise.all([fleet.addWorker({ inspect }), fleet.addWorker({ inspect })]);
  expect(inspected).toEqual([]);
  const api = await catalogue();
  expect(await api.signatureOf('m', '1')).toMatchObject({ model: 'm', version: '1' });
  expect(inspected).toEqual(['m@1']);
  expect((await untilPublished(() => true)).by).toBe('reader');
});

it('of files that cannot be read leave the question with an answer', async () => {
  fleet = new LightFleet(modelFiles('m', [1], lazy));
  await fleet.addWorker({ inspect: () => Promise.reject(new Error('not a model')) });
  await expect((await catalogue(500)).signatureOf('m', '1')).rejects.toMatchObject({
    code: 'signature_unavailable',
  });
});

it('follow settings that change without a load, of loaded versions', async () => {
  fleet = new LightFleet(modelFiles('m', [1]));
  await fleet.addWorker();
  fleet.write(fleet.models, { 'm/model.yaml': 'harness: onnx\nmax_batch_size: 3\nversion_policy: all\n' });
  await fleet.edit('m', (now) => now);
  const { signature, by } = await untilPublished(({ config }) => config.version_policy === 'all');
  expect(signature.max_batch_size).toBe(3);
  expect(by).toBe('worker');
});

it('follow settings that change without a load, of versions that are not loaded', async () => {
  fleet = new LightFleet(modelFiles('m', [1], lazy));
  const { id } = await fleet.addWorker();
  const state = await fleet.stateOf(id, 'm', '1');
  const config = HarnessConfig.parse({ harness: 'onnx', load_mode: 'on_demand' });
  const signature = signatureOf({ model: 'm', version: '1', digest: state?.digest } as never);
  await publishSignature(fleet.redis, fleet.keys, signature, config, 'reader');
  fleet.write(fleet.models, { 'm/model.yaml': `harness: onnx\n${lazy}\nfallback_model: other\n` });
  await fleet.edit('m', (now) => now);
  expect((await untilPublished(({ config }) => config.fallback_model === 'other')).by).toBe('reader');
});
