import type { LoadedModel, WorkerHeartbeat } from '@remuda/schemas';
import { expect, it } from 'vitest';
import { type ConvergenceFacts, convergenceOf } from './convergence.js';
import { untouched } from './deployments.js';

const worker = (worker_id = 'w1', deployments_revision = 1, state = 'ready') =>
  ({ worker_id, deployments_revision, state }) as WorkerHeartbeat;
const copy = (version: string, state: LoadedModel['state'], of = worker()) => ({
  worker: of,
  loaded: { version, state, device: 'cpu', reason: state === 'failed' ? 'corrupt' : null } as LoadedModel,
});

/** A model of two versions of which the newest is wanted and served. */
function facts(over: Partial<ConvergenceFacts> = {}): ConvergenceFacts {
  const since = new Date(0).toISOString();
  return {
    config: { load_mode: 'eager', version_policy: 'latest' },
    deployment: { ...untouched('m'), revision: 1 },
    serving: { model: 'm', refs: { default: { version: '2', previous: null, since, reason: '' } } },
    versions: ['1', '2'],
    copies: [copy('2', 'ready')],
    workers: [worker()],
    now: Date.now(),
    ...over,
  };
}

it('is done when all that is wanted is ready and served', () => {
  expect(convergenceOf(facts())).toEqual({ done: true, waiting_for: [], failed: [] });
});

it('waits for a worker that has not taken in the change', () => {
  const late = facts({ workers: [worker('w1', 0)] });
  expect(convergenceOf(late).waiting_for).toEqual(['w1 takes in the change']);
});

it('waits for what is being loaded or drained', () => {
  const under = facts({ copies: [copy('2', 'ready'), copy('1', 'draining')] });
  expect(convergenceOf(under).waiting_for).toEqual(['w1: 1 on cpu is draining']);
});

it('waits for a version that should be loaded and that nobody has begun', () => {
  expect(convergenceOf(facts({ copies: [] })).waiting_for).toEqual(['no worker has begun to load 2']);
});

it('waits for a version that is to be unloaded', () => {
  const off = facts({ deployment: { ...untouched('m'), revision: 1, loads: { 1: 'unloaded' } } });
  const copies = [copy('2', 'ready'), copy('1', 'ready')];
  expect(convergenceOf({ ...off, copies }).waiting_for).toEqual(['w1: 1 on cpu is to be unloaded']);
});

it('waits for a reference that is still to move', () => {
  expect(convergenceOf(facts({ serving: undefined })).waiting_for).toEqual(['default moves to 2']);
});

it('is done, and failed, where what is wanted cannot be loaded', () => {
  const served1 = facts().serving;
  if (served1?.refs.default) served1.refs.default.version = '1';
  const copies = [copy('1', 'ready'), copy('2', 'failed')];
  expect(convergenceOf(facts({ copies, serving: served1 }))).toEqual({
    done: true,
    waiting_for: [],
    failed: ['w1: 2 on cpu: corrupt'],
  });
});

it('takes no account of a worker that drains, and is not done where none is alive', () => {
  const leaving = facts({ workers: [worker(), worker('w2', 0, 'draining')] });
  expect(convergenceOf(leaving).done).toBe(true);
  expect(convergenceOf(facts({ workers: [], copies: [] })).waiting_for).toContain('no worker is alive');
});

it('waits for a model that no worker has fetched yet, until one says why it cannot', () => {
  const source = { type: 'http', url: 'https://host/manifest.json' } as const;
  const deployment = { ...untouched('m'), revision: 1, source };
  const remote = facts({ deployment, versions: [], copies: [], serving: undefined });
  expect(convergenceOf(remote).waiting_for).toEqual(['no worker has fetched it from its source']);
  expect(convergenceOf({ ...remote, copies: [copy('', 'loading')] }).waiting_for).toContain(
    'w1: it is being fetched',
  );
  expect(convergenceOf({ ...remote, copies: [copy('', 'failed')] })).toEqual({
    done: true,
    waiting_for: [],
    failed: ['w1: corrupt'],
  });
});

it('says what a worker has to say about a version that it should load and does not', () => {
  const unloaded = copy('2', 'unloaded');
  unloaded.loaded.reason = 'no room at present; the first request loads it';
  expect(convergenceOf(facts({ copies: [unloaded] })).waiting_for).toEqual([
    'no worker has begun to load 2: w1 says "no room at present; the first request loads it"',
  ]);
});
