import type { AffinityRule, HarnessConfig } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { type DeviceFacts, fitsDevice, placeModel, unmetRules } from './fits-device.js';

const MIB = 2 ** 20;
const cpu = facts({ device: 'cpu', device_class: 'cpu', memory_free_bytes: 4_000 * MIB });
const a100 = facts({
  device: 'cuda:0',
  memory_total_bytes: 40_960 * MIB,
  memory_free_bytes: 10_000 * MIB,
  utilisation: 0.87,
  compute_capability: 8,
});
const t4 = facts({
  device: 'cuda:1',
  memory_total_bytes: 15_360 * MIB,
  memory_free_bytes: 15_000 * MIB,
  utilisation: 0.1,
  compute_capability: 7.5,
});

function facts(given: Partial<DeviceFacts>): DeviceFacts {
  return {
    device: 'cuda:0',
    device_class: 'cuda',
    memory_total_bytes: null,
    memory_free_bytes: null,
    utilisation: null,
    compute_capability: null,
    cores: 8,
    ...given,
  };
}

function rule(given: Partial<AffinityRule>): AffinityRule {
  return { device: 'cuda', allow_cpu_fallback: false, ...given };
}

describe('fitsDevice', () => {
  it.each([
    ['memory', rule({ min_free_memory_mib: 10_000, max_utilisation: 0.87 }), a100],
    ['compute capability', rule({ min_compute_capability: 7.5 }), t4],
    ['cores', rule({ device: 'cpu', min_cores: 8, min_free_memory_mib: 4_000 }), cpu],
    ['one device', rule({ device: 'cuda:1' }), t4],
    ['the first device of a class without numbers', rule({ device: 'cpu:0' }), cpu],
  ])('takes what meets the rule, up to the bound itself: %s', (_, given, device) =>
    expect(fitsDevice(given, device)).toEqual({ fits: true }),
  );

  it.each([
    [
      rule({ min_free_memory_mib: 10_001 }),
      a100,
      'cuda:0 has 10000 MiB of memory free; the rule asks for 10001 MiB',
      false,
    ],
    [
      rule({ min_free_memory_mib: 20_000 }),
      t4,
      'cuda:1 has 15360 MiB of memory in all; the rule asks for 20000 MiB free',
      true,
    ],
    [rule({ max_utilisation: 0.8 }), a100, 'cuda:0 is 87 % busy; the rule asks for 80 % at most', false],
    [rule({ min_compute_capability: 8 }), t4, 'cuda:1 has compute capability 7.5; the rule asks for 8', true],
    [
      rule({ device: 'cpu', min_cores: 16 }),
      cpu,
      'the machine of cpu has 8 usable cores; the rule asks for 16',
      true,
    ],
    [rule({ device: 'cuda:0' }), t4, 'the rule is for cuda:0, this is cuda:1', true],
    [rule({}), cpu, 'the rule is for cuda, this is cpu', true],
  ])('refuses with the reason: %j', (given, device, reason, lasting) =>
    expect(fitsDevice(given, device)).toEqual({ fits: false, reason, lasting }),
  );

  it.each([
    [{ min_free_memory_mib: 1 }, 'how much memory is free on cuda:0 is not known'],
    [{ max_utilisation: 1 }, 'the utilisation of cuda:0 is not known'],
    [{ min_compute_capability: 1 }, 'the compute capability of cuda:0 is not known'],
  ])('takes what is not known for not met: %j', (given, reason) =>
    expect(fitsDevice(rule(given), facts({}))).toMatchObject({
      fits: false,
      reason: expect.stringContaining(reason),
    }),
  );

  it.each([{ max_utilisation: 0.5 }, { min_compute_capability: 7 }])(
    'says that a condition of GPUs cannot be met by a CPU: %j',
    (given) =>
      expect(fitsDevice(rule({ device: 'cpu', ...given }), cpu)).toMatchObject({
        fits: false,
        reason: expect.stringContaining('is a condition for GPUs'),
      }),
  );
});

describe('placeModel', () => {
  const place = (config: Pick<HarnessConfig, 'affinity' | 'device'>, devices = [cpu, a100, t4]) => {
    const { placed, refused, problem } = placeModel(config, devices);
    return {
      placed: placed.map((entry) => `${entry.device.device} by ${entry.rule.device}`),
      refused: refused.map((entry) => `${entry.device.device}: ${entry.reason}`),
      problem,
    };
  };

  it('follows the order of the rules, and takes each device once', () =>
    expect(place({ affinity: [rule({ device: 'cuda:1' }), 'cuda', 'cpu'] }).placed).toEqual([
      'cuda:1 by cuda:1',
      'cuda:0 by cuda',
      'cpu by cpu',
    ]));

  it('says why a device was refused, and may place it by a later rule', () =>
    expect(place({ affinity: [rule({ min_compute_capability: 8 }), rule({ precision: 'int8' })] })).toEqual({
      placed: ['cuda:0 by cuda', 'cuda:1 by cuda'],
      refused: ['cuda:1: cuda:1 has compute capability 7.5; the rule asks for 8'],
      problem: null,
    }));

  it('says why there is no place at all', () => {
    expect(place({ affinity: [rule({ min_compute_capability: 9 })] }, [cpu, t4]).problem).toBe(
      'cuda:1 has compute capability 7.5; the rule asks for 9',
    );
    expect(place({ affinity: ['cuda', 'tensorrt'] }, [cpu]).problem).toBe(
      'its rules ask for cuda or tensorrt, of which there is none here',
    );
  });

  it('goes by `device`, and by cpu where nothing is said', () => {
    expect(place({ device: 'cuda' }).placed).toEqual(['cuda:0 by cuda', 'cuda:1 by cuda']);
    expect(place({}).placed).toEqual(['cpu by cpu']);
  });
});

describe('unmetRules', () => {
  const worker = (devices: DeviceFacts[], models: { model: string; device: string; state: string }[] = []) =>
    ({ cores: 8, devices, models }) as never;

  it('is silent while some device of the fleet meets each rule', () =>
    expect(
      unmetRules('m', { affinity: [rule({ min_compute_capability: 8 }), 'cpu'] }, [
        worker([cpu, t4]),
        worker([a100]),
      ]),
    ).toEqual([]));

  it('names each rule that none meets, with the reasons', () =>
    expect(
      unmetRules('m', { affinity: [rule({ min_compute_capability: 9 }), 'tensorrt', 'cpu'] }, [
        worker([cpu, t4]),
        worker([a100]),
      ]),
    ).toEqual([
      'no device of the fleet meets its rule "cuda": cuda:1 has compute capability 7.5; the rule asks for 9; cuda:0 has compute capability 8; the rule asks for 9',
      'no worker of the fleet has a device for its rule "tensorrt"',
    ]));

  it('takes a device that has the model for one that meets the rule: what it takes is no longer free', () => {
    const config = { affinity: [rule({ min_free_memory_mib: 12_000 })] };
    const loaded = { model: 'm', device: 'cuda:0', state: 'ready' };
    expect(unmetRules('m', config, [worker([a100])])).toHaveLength(1);
    expect(unmetRules('m', config, [worker([a100], [loaded])])).toEqual([]);
  });

  it('says nothing about a fleet of which nothing is known', () =>
    expect(unmetRules('m', { affinity: ['cuda'] }, [])).toEqual([]));
});
