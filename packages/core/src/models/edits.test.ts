import { InvalidInputError, type ModelDeployment, TrafficSplit } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { untouched } from './deployments.js';
import * as edits from './edits.js';

const VERSIONS = ['1', '2', '3'];
const state = (over: Partial<ModelDeployment> = {}): ModelDeployment => ({ ...untouched('m'), ...over });

function violationOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    if (error instanceof InvalidInputError) return { code: error.code, ...error.violations[0] };
    throw error;
  }
  return 'nothing was refused';
}

describe('registering', () => {
  it('sets what is given, and leaves what is not', () => {
    const change = edits.registered(
      { name: 'm', load_mode: 'on_demand', settings: { timeout_ms: 5 } },
      undefined,
    );
    const next = change(state({ registered: false, pinned: true, settings: { max_batch_size: 2 } }));
    expect(next).toMatchObject({
      registered: true,
      load_mode: 'on_demand',
      pinned: true,
      settings: { max_batch_size: 2, timeout_ms: 5 },
      source: null,
    });
    expect(next).not.toHaveProperty('name');
  });

  it('forgets, when it is taken back, all that was wanted', () => {
    const next = edits.takenOut(state({ aliases: { a: '1' }, loads: { 1: 'loaded' }, revision: 4 }));
    expect(next).toEqual({ ...untouched('m'), registered: false, revision: 4 });
  });
});

describe('changing settings', () => {
  it('null gives a setting back to model.yaml, and means "no objective" of the latency objective', () => {
    const before = state({ settings: { timeout_ms: 5, max_batch_size: 2 }, load_mode: 'explicit' });
    const next = edits.patched({
      load_mode: null,
      settings: { timeout_ms: null, latency_objective_ms: null },
    })(before);
    expect(next.settings).toEqual({ max_batch_size: 2, latency_objective_ms: null });
    expect(next.load_mode).toBeNull();
    expect(edits.patched({ settings: null })(before).settings).toEqual({});
  });

  it('a digest can be given and taken away by version', () => {
    const next = edits.patched({ digests: { 1: null, 2: 'b' } })(state({ digests: { 1: 'a', 3: 'c' } }));
    expect(next.digests).toEqual({ 2: 'b', 3: 'c' });
  });
});

describe('loading and unloading', () => {
  it('is by number or alias', () => {
    expect(edits.loaded('beta', VERSIONS)(state({ aliases: { beta: '2' } })).loads).toEqual({ 2: 'loaded' });
    expect(edits.unloaded('2', VERSIONS)(state({ loads: { 1: 'loaded' } })).loads).toEqual({
      1: 'loaded',
      2: 'unloaded',
    });
  });

  it('without a version loads the newest and holds none back, and unloads all', () => {
    const off = edits.unloaded(undefined, VERSIONS)(state());
    expect(off.loads).toEqual({ 1: 'unloaded', 2: 'unloaded', 3: 'unloaded' });
    expect(edits.loaded(undefined, VERSIONS)(off).loads).toEqual({ 3: 'loaded' });
  });

  it('of a version or alias that is not there is refused', () => {
    expect(() => edits.loaded('9', VERSIONS)(state())).toThrow('m has no version 9; it has 1, 2, 3');
    expect(() => edits.unloaded('beta', VERSIONS)(state())).toThrow('m has no alias "beta"; it has none');
  });
});

describe('an alias', () => {
  it('leads to a version that is there', () => {
    expect(edits.aliasSet('beta', '2', VERSIONS)(state()).aliases).toEqual({ beta: '2' });
    expect(violationOf(() => edits.aliasSet('beta', '9', VERSIONS)(state()))).toEqual({
      code: 'version_not_found',
      path: 'version',
      expected: 'a version of m: 1, 2, 3',
      received: '"9"',
    });
  });

  it('is not taken away while a split or the shadow names it', () => {
    const aliases = { beta: '2' };
    const split = { stable: 'beta', weights: { beta: 100 }, rollback: null };
    expect(violationOf(() => edits.aliasRemoved('beta')(state({ aliases, split })))).toMatchObject({
      path: 'path.alias',
      received: '"beta", which the split names: take that away first',
    });
    const shadow = { version: 'beta', sample: 1 };
    expect(violationOf(() => edits.aliasRemoved('beta')(state({ aliases, shadow })))).toMatchObject({
      received: '"beta", which the shadow names: take that away first',
    });
    expect(edits.aliasRemoved('beta')(state({ aliases })).aliases).toEqual({});
    expect(() => edits.aliasRemoved('beta')(state())).toThrow('m has no alias "beta"');
  });
});

describe('a split', () => {
  it('names versions and aliases that are there', () => {
    const split = { stable: '1', weights: { 1: 50, beta: 50 }, rollback: null };
    expect(edits.splitSet(split, VERSIONS)(state({ aliases: { beta: '2' } })).split).toEqual(split);
    expect(violationOf(() => edits.splitSet(split, VERSIONS)(state()))).toEqual({
      code: 'invalid_request',
      path: 'weights.beta',
      expected: 'a version (1, 2, 3) or alias (none) of m',
      received: '"beta"',
    });
  });

  it.each([
    [{ stable: '1', weights: { 1: 50, 2: 49 } }, 'weights'],
    [{ stable: '1', weights: { 1: 101, 2: -1 } }, 'weights.1'],
    [{ stable: '3', weights: { 1: 50, 2: 50 } }, 'stable'],
    [{ stable: '1', weights: { 1: 100 }, extra: 1 }, ''],
  ])('%j is none', (given, path) => {
    const parsed = TrafficSplit.safeParse(given);
    expect(parsed.error?.issues[0]?.path.join('.')).toBe(path);
  });
});

it('a shadow is a version or alias that is there', () => {
  const shadow = { version: '2', sample: 1 };
  expect(edits.shadowSet(shadow, VERSIONS)(state()).shadow).toEqual(shadow);
  expect(violationOf(() => edits.shadowSet({ version: '9', sample: 1 }, VERSIONS)(state()))).toMatchObject({
    path: 'version',
  });
});

describe('an alias called like what every object has', () => {
  it('is not there before it is set', () => {
    expect(() => edits.aliasRemoved('constructor')(state())).toThrow('m has no alias "constructor"');
    expect(() => edits.loaded('constructor', VERSIONS)(state())).toThrow('m has no alias "constructor"');
    expect(TrafficSplit.safeParse({ stable: 'constructor', weights: { 1: 100 } }).success).toBe(false);
  });

  it('is an alias like any other once it is', () => {
    const set = edits.aliasSet('constructor', '2', VERSIONS)(state());
    expect(edits.loaded('constructor', VERSIONS)(set).loads).toEqual({ 2: 'loaded' });
    expect(edits.aliasRemoved('constructor')(set).aliases).toEqual({});
  });
});
