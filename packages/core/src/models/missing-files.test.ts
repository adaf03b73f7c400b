import type { WorkerHeartbeat } from '@remuda/schemas';
import { expect, it } from 'vitest';
import { type FilesFacts, missingFilesProblem } from './missing-files.js';

const cpu = { device: 'cpu', device_class: 'cpu' };
const worker = (over: object = {}) =>
  ({ state: 'ready', cores: 2, devices: [cpu], models: [{ model: 'other' }], ...over }) as WorkerHeartbeat;

function problem(over: Partial<FilesFacts> = {}): string | undefined {
  return missingFilesProblem({
    ...{ model: 'gone', inRepository: false, config: null, workers: [worker()] },
    deployment: { registered: true, source: null },
    ...over,
  });
}

it('a model that no live worker names has no files any more, and it says how to take it out', () => {
  expect(problem()).toBe('no worker has its files any more; `remuda models unregister gone` takes it out');
});

it.each<[string, Partial<FilesFacts>]>([
  ['a worker names it, loaded or not', { workers: [worker(), worker({ models: [{ model: 'gone' }] })] }],
  ['it lies in the repository of the API', { inRepository: true }],
  ['it was registered with a source', { deployment: { registered: true, source: { path: '/m' } } }],
  ['it was taken out', { deployment: { registered: false, source: null } }],
  ['no worker is up', { workers: [] }],
  ['the only worker is still starting', { workers: [worker({ state: 'starting' })] }],
  ['no worker has a device for it', { config: { affinity: [{ device: 'cuda' }] } as FilesFacts['config'] }],
])('nothing is said where %s', (_, over) => {
  expect(problem(over)).toBeUndefined();
});
