import { describe, expect, it } from 'vitest';
import { FAULT_KINDS, FAULT_NAMES } from './fault-kinds.js';
import { makePlan } from './plan.js';

const QUESTION = { seed: 7, faults: 60, ids: 6_000, workers: 3, apis: 2 };

describe('a plan of faults', () => {
  it('is the same for the same seed, and another for another', () => {
    expect(makePlan(QUESTION)).toEqual(makePlan(QUESTION));
    expect(makePlan({ ...QUESTION, seed: 8 })).not.toEqual(makePlan(QUESTION));
  });

  it('has every kind before any comes twice, and common ones more often later', () => {
    const kinds = makePlan({ ...QUESTION, faults: 400 }).map(({ kind }) => kind);
    const drawn = FAULT_NAMES.filter((name) => name !== 'upgrade');
    expect(new Set(kinds.slice(0, drawn.length))).toEqual(new Set(drawn));
    const times = (name: string) => kinds.filter((kind) => kind === name).length;
    expect(times('worker_kill')).toBeGreaterThan(times('worker_term'));
  });

  it('strikes only what is there, for as long as its kind says, one after the other within the load', () => {
    const plan = makePlan({ ...QUESTION, faults: 400 });
    for (const { kind, target, locks, variant } of plan) {
      const { strikes, locks: range = [0, 0], variants = [''] } = FAULT_KINDS[kind];
      const there = { worker: 3, api: 2, process: 5, store: 1, sinks: 1, queue: 1 }[strikes];
      expect(target).toBeGreaterThanOrEqual(0);
      expect(target).toBeLessThan(there);
      expect(locks).toBeGreaterThanOrEqual(range[0]);
      expect(locks).toBeLessThanOrEqual(range[1]);
      expect(variants).toContain(variant);
    }
    const places = plan.map(({ at }) => at);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places[0]).toBeGreaterThan(0);
    expect(places.at(-1)).toBeLessThan(QUESTION.ids);
  });

  it('goes on while what was ended is started again, and now and then strikes twice at once', () => {
    const plan = makePlan({ ...QUESTION, faults: 400 });
    const others = plan.filter(({ kind }) => !FAULT_KINDS[kind].lingers);
    expect(plan.filter(({ kind }) => FAULT_KINDS[kind].lingers).every(({ together }) => together)).toBe(true);
    expect(others.some(({ together }) => together)).toBe(true);
    expect(others.filter(({ together }) => together).length).toBeLessThan(others.length / 2);
  });

  it('upgrades what is of an older build within the first part, and nothing where there is none', () => {
    const placesOf = (upgrades: number) =>
      makePlan({ ...QUESTION, upgrades }).flatMap(({ kind, number }) => (kind === 'upgrade' ? [number] : []));
    expect(placesOf(0)).toEqual([]);
    expect(placesOf(5)).toHaveLength(5);
    expect(Math.max(...placesOf(5))).toBeLessThan(QUESTION.faults / 3);
    const plan = makePlan({ ...QUESTION, upgrades: 5 });
    const upgraded = plan.filter(({ kind }) => kind === 'upgrade').map(({ target }) => target);
    expect(upgraded).toEqual([0, 1, 2, 3, 4]);
  });

  it('draws from the kinds that are asked for alone', () => {
    const plan = makePlan({ ...QUESTION, kinds: ['redis_kill'] });
    expect(new Set(plan.map(({ kind }) => kind))).toEqual(new Set(['redis_kill']));
  });
});
