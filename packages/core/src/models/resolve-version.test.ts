import type { ModelDeployment, ServingState, TrafficSplit } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { untouched } from './deployments.js';
import { stickyBucket, type VersionAsk, type VersionFacts, VersionTable } from './resolve-version.js';
import type { VersionAvailability } from './version-availability.js';

const ready: VersionAvailability = { readyOn: new Set(['cpu']), coming: false, broken: false };
const broken: VersionAvailability = { ...ready, broken: true };

function served(refs: Record<string, string>): ServingState {
  const entries = Object.entries(refs).map(([ref, version]) => [
    ref,
    { version, previous: null, since: new Date(0).toISOString(), reason: 'by the version policy' },
  ]);
  return { model: 'm', refs: Object.fromEntries(entries) };
}

function split(weights: Record<string, number>, stable = '1'): TrafficSplit {
  return { stable, weights, rollback: null };
}

interface Given extends Partial<Omit<VersionFacts, 'deployment' | 'availability'>> {
  wanted?: Partial<ModelDeployment>;
  availability?: Record<string, VersionAvailability>;
}

function setup({ wanted = {}, availability = { 1: ready, 2: ready }, ...given }: Given = {}) {
  const table = new VersionTable({
    deployment: { ...untouched('m'), ...wanted },
    serving: undefined,
    loadMode: 'eager',
    versions: ['1', '2', '3'],
    newestServed: null,
    problems: [],
    availability: new Map(Object.entries(availability)),
    ...given,
  });
  const choose = (ask: Partial<VersionAsk> = {}) => table.choose({ random: () => 0.5, ...ask });
  return { table, choose };
}

describe('a request that names', () => {
  it('a number goes there, also where nobody has it ready', () => {
    expect(setup().choose({ ref: '3' })).toEqual({ version: '3', reason: 'the request names version 3' });
  });

  it('an alias goes where the fleet serves it, which follows what is wanted', () => {
    const wanted = { aliases: { canary: '2' } };
    expect(setup({ wanted, serving: served({ canary: '1' }) }).choose({ ref: 'canary' }).version).toBe('1');
    expect(setup({ wanted }).choose({ ref: 'canary' }).version).toBe('2');
  });

  it('"default" goes where one without a version goes', () => {
    expect(setup({ serving: served({ default: '1' }) }).choose({ ref: 'default' }).version).toBe('1');
  });

  it('a number that is not there is told which are', () => {
    expect(() => setup().choose({ ref: '9' })).toThrow('m has no version 9; it has 1, 2, 3');
  });

  it('an alias that is not there is told which are, though the fleet may still serve it', () => {
    const { choose } = setup({
      wanted: { aliases: { stable: '1', beta: '2' } },
      serving: served({ gone: '2' }),
    });
    expect(() => choose({ ref: 'gone' })).toThrow('m has no alias "gone"; it has beta, stable');
  });

  it('an alias to a version whose files are gone is told so', () => {
    const { choose } = setup({ wanted: { aliases: { old: '7' } } });
    expect(() => choose({ ref: 'old' })).toThrow('alias old of m leads to version 7, which is not there');
  });

  it('a version that was unloaded by name is told how to load it', () => {
    const { choose } = setup({ wanted: { loads: { 2: 'unloaded' } } });
    expect(() => choose({ ref: '2' })).toThrow(
      'm@2 was unloaded by name; load it with POST /v1/admin/models/m:load {"version": "2"}',
    );
  });

  it('a version of an explicit model goes there only once it was loaded by name', () => {
    const loadMode = 'explicit' as const;
    expect(() => setup({ loadMode }).choose({ ref: '1' })).toThrow(
      'm@1 is not loaded: its load mode is explicit',
    );
    expect(setup({ loadMode, wanted: { loads: { 1: 'loaded' } } }).choose({ ref: '1' }).version).toBe('1');
  });
});

describe('a request that names no version goes to', () => {
  it('what the fleet serves, though a newer one is ready', () => {
    expect(setup({ serving: served({ default: '1' }) }).choose()).toEqual({
      version: '1',
      reason: 'version 1 is served: by the version policy',
    });
  });

  it('the alias stable where nothing is agreed yet', () => {
    expect(setup({ wanted: { aliases: { stable: '1' } } }).choose().version).toBe('1');
  });

  it('else the newest that a worker has ready', () => {
    expect(setup({ newestServed: '3' }).choose().version).toBe('2');
  });

  it('else the newest that was ever served', () => {
    expect(setup({ availability: {}, newestServed: '2' }).choose().version).toBe('2');
  });

  it('another than what is served, where that was unloaded by name', () => {
    const { choose } = setup({ serving: served({ default: '2' }), wanted: { loads: { 2: 'unloaded' } } });
    expect(choose().version).toBe('1');
  });

  it('nothing of an explicit model that nobody loaded', () => {
    expect(() => setup({ loadMode: 'explicit' }).choose()).toThrow(
      'm has no version loaded: its load mode is explicit; load it with POST /v1/admin/models/m:load',
    );
  });

  it('nothing where there is no version, which is told with what is wrong', () => {
    const { choose } = setup({ versions: [], problems: ['m/model.yaml: missing'] });
    expect(() => choose()).toThrow('m has no version that can be served: m/model.yaml: missing');
  });
});

describe('a split', () => {
  const keys = Array.from({ length: 10_000 }, (_, at) => `user-${at}`);
  const shareOf = (version: string, choose: ReturnType<typeof setup>['choose']): string[] =>
    keys.filter((stickyKey) => choose({ stickyKey }).version === version);

  it('spreads by weight', () => {
    const { choose } = setup({ wanted: { split: split({ 1: 80, 2: 20 }) } });
    expect(choose({ random: () => 0.19 }).version).toBe('2');
    expect(choose({ random: () => 0.21 }).version).toBe('1');
    expect(choose({ random: () => 0.19 }).reason).toBe('the split gives 20 % to 2, by chance');
  });

  it('gives keys about the share of each, and each key the same one every time', () => {
    const { choose } = setup({ wanted: { split: split({ 1: 90, 2: 10 }) } });
    const first = shareOf('2', choose);
    expect(first.length).toBeGreaterThan(900);
    expect(first.length).toBeLessThan(1_100);
    expect(shareOf('2', choose)).toEqual(first);
    expect(choose({ stickyKey: first[0] as string }).reason).toBe(
      'the split gives 10 % to 2, by its sticky_key',
    );
  });

  it('that grows takes keys from the stable side and gives none back', () => {
    const before = new Set(shareOf('2', setup({ wanted: { split: split({ 1: 90, 2: 10 }) } }).choose));
    const after = new Set(shareOf('2', setup({ wanted: { split: split({ 1: 70, 2: 30 }) } }).choose));
    expect([...before].filter((key) => !after.has(key))).toEqual([]);
  });

  it('puts a key into different buckets of different models', () => {
    expect(stickyBucket('a', 'key')).not.toBe(stickyBucket('b', 'key'));
    expect(keys.every((key) => stickyBucket('m', key) < 100)).toBe(true);
  });

  it('gives nothing to a canary that no live worker has ready, and says so', () => {
    const { choose } = setup({ wanted: { split: split({ 1: 50, 3: 50 }) } });
    expect(choose({ random: () => 0.1 })).toEqual({
      version: '1',
      reason: 'the split gives 50 % to 3, which no live worker has ready: it went to 1, by chance',
    });
  });

  it('gives nothing to a canary whose runs keep failing', () => {
    const { choose } = setup({
      wanted: { split: split({ 1: 50, 2: 50 }) },
      availability: { 1: ready, 2: broken },
    });
    expect(choose({ random: () => 0.1 }).version).toBe('1');
  });

  it('follows its aliases', () => {
    const wanted = {
      aliases: { stable: '1', canary: '2' },
      split: split({ stable: 50, canary: 50 }, 'stable'),
    };
    const { choose } = setup({ wanted });
    expect(choose({ random: () => 0.1 })).toEqual({
      version: '2',
      reason: 'the split gives 50 % to canary (2), by chance',
    });
    expect(choose({ random: () => 0.9 }).version).toBe('1');
  });

  it('has its stable side as the default version', () => {
    expect(setup({ wanted: { split: split({ 1: 1, 2: 99 }) } }).table.byDefault().version).toBe('1');
  });

  it('leaves alone who names a version', () => {
    const { choose } = setup({ wanted: { split: split({ 1: 0, 2: 100 }) } });
    expect(choose({ ref: '1' }).version).toBe('1');
    expect(choose().version).toBe('2');
  });
});
