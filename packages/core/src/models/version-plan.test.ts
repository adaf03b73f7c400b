import { HarnessConfig, type ServingState } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { untouched } from './deployments.js';
import { type PlanFacts, planVersions, RETIRE_AFTER_MS, retiringRefs } from './version-plan.js';

const NOW = 1_000_000_000_000;

function plan(over: Partial<PlanFacts> = {}): Record<string, string> {
  const facts: PlanFacts = {
    config: HarnessConfig.parse({ harness: 'onnx' }),
    deployment: untouched('m'),
    versions: ['1', '2', '3'],
    serving: undefined,
    loaded: new Set(),
    now: NOW,
    ...over,
  };
  return Object.fromEntries(planVersions(facts).map(({ version, want }) => [version, want]));
}

function served(version: string, previous: string | null, ageMs: number): ServingState {
  const since = new Date(NOW - ageMs).toISOString();
  return { model: 'm', refs: { default: { version, previous, since, reason: '' } } };
}

const deployment = untouched('m');
const config = (yaml: object) => HarnessConfig.parse({ harness: 'onnx', ...yaml });

describe('without any wish', () => {
  it('the newest version is loaded; the others only while a request asks for them', () => {
    expect(plan()).toEqual({ 1: 'idle', 2: 'idle', 3: 'load' });
  });

  it('the version policy of model.yaml says how many', () => {
    expect(plan({ config: config({ version_policy: { latest: 2 } }) })).toEqual({
      1: 'idle',
      2: 'load',
      3: 'load',
    });
  });

  it('a model that is loaded on demand has its newest version loaded by a request, and kept', () => {
    expect(plan({ config: config({ load_mode: 'on_demand' }) })).toMatchObject({ 3: 'on_demand' });
  });

  it('an explicit model has none', () => {
    expect(plan({ config: config({ load_mode: 'explicit' }) })).toEqual({ 1: 'off', 2: 'off', 3: 'off' });
  });
});

describe('what was said by name', () => {
  it('goes before policy and load mode', () => {
    const loads = { 1: 'loaded', 3: 'unloaded' } as const;
    expect(plan({ deployment: { ...deployment, loads } })).toEqual({ 1: 'load', 2: 'idle', 3: 'off' });
    const explicit = { deployment: { ...deployment, loads }, config: config({ load_mode: 'explicit' }) };
    expect(plan(explicit)).toEqual({ 1: 'load', 2: 'off', 3: 'off' });
  });

  it('a model that was taken out holds nothing, whatever serves', () => {
    const out = { ...deployment, registered: false, loads: { 1: 'loaded' as const } };
    expect(plan({ deployment: out, serving: served('3', null, 0) })).toEqual({
      1: 'off',
      2: 'off',
      3: 'off',
    });
  });

  it('what aliases, a split and a shadow name is kept', () => {
    const aliases = { stable: '1' };
    const split = { stable: 'stable', weights: { stable: 90, 2: 10 } };
    expect(plan({ deployment: { ...deployment, aliases } })).toMatchObject({ 1: 'load', 2: 'idle' });
    expect(plan({ deployment: { ...deployment, aliases, split: split as never } })).toMatchObject({
      2: 'load',
    });
    const shadow = { version: '2' } as never;
    expect(plan({ deployment: { ...deployment, shadow } })).toMatchObject({ 2: 'load' });
  });
});

describe('while another version takes over', () => {
  it('what serves stays until the next one does', () => {
    expect(plan({ serving: served('2', null, 60_000) })).toEqual({ 1: 'idle', 2: 'load', 3: 'load' });
  });

  it('the old one stays a while longer, until every API has heard of it', () => {
    expect(plan({ serving: served('3', '2', RETIRE_AFTER_MS - 1) })).toMatchObject({ 2: 'load' });
    expect(plan({ serving: served('3', '2', RETIRE_AFTER_MS) })).toMatchObject({ 2: 'idle' });
    expect(retiringRefs(served('3', '2', RETIRE_AFTER_MS - 1), NOW)).toEqual(['default']);
    expect(retiringRefs(served('3', '2', RETIRE_AFTER_MS), NOW)).toEqual([]);
  });

  it('a model on demand has the next version loaded where the present one is', () => {
    const lazy = { config: config({ load_mode: 'on_demand' }), serving: served('2', null, 60_000) };
    expect(plan(lazy)).toMatchObject({ 2: 'on_demand', 3: 'on_demand' });
    expect(plan({ ...lazy, loaded: new Set(['2']) })).toMatchObject({ 2: 'on_demand', 3: 'load' });
  });
});
