import { describe, expect, it } from 'vitest';
import { RemudaError } from '../errors.js';
import type { ClassFacts } from '../fleet/class-index.js';
import { type RouteFacts, routeRequest } from './route.js';

const facts = (deviceClass: ClassFacts['deviceClass'], given: Partial<ClassFacts> = {}): ClassFacts => ({
  deviceClass,
  ready: 1,
  coming: 0,
  broken: 0,
  instances: 1,
  rowsInHand: 0,
  secondsPerRow: null,
  deviceSecondsPerRow: null,
  runSeconds: null,
  lastUsedAt: null,
  ...given,
});
const measured = (deviceClass: ClassFacts['deviceClass'], perRow: number, given: Partial<ClassFacts> = {}) =>
  facts(deviceClass, { secondsPerRow: perRow, deviceSecondsPerRow: perRow, runSeconds: perRow, ...given });
const LIVE = [facts('cuda'), facts('cpu')];

const route = (given: Partial<RouteFacts>) =>
  routeRequest({
    affinity: ['cuda', 'cpu'],
    lane: 'interactive',
    rows: 1,
    classes: LIVE,
    queuedRows: () => 0,
    ageMs: 700,
    ...given,
  });
const queued = (rows: Record<string, number>) => (deviceClass: string) => rows[deviceClass] ?? 0;

describe('routeRequest, where nothing is measured', () => {
  it('takes the first class of the rules that a live worker has, and says what it knew', () => {
    expect(route({})).toEqual({
      device_class: 'cuda',
      lane: 'interactive',
      reasons: [
        'the model prefers cuda, then cpu',
        'cuda is not measured yet: by order of preference',
        'a live worker has it on cuda',
      ],
      candidates: [
        {
          device_class: 'cuda',
          workers: 1,
          instances: 1,
          rows_ahead: 0,
          seconds_per_row: null,
          expected_s: null,
          verdict: 'chosen',
        },
        expect.objectContaining({ device_class: 'cpu', verdict: 'comes after the one chosen' }),
      ],
      facts_age_ms: 700,
    });
  });

  it('passes over a class that no live worker has', () => {
    const { device_class, lane, reasons, candidates } = route({ classes: [facts('cpu')], lane: 'bulk' });
    expect({ device_class, lane, reasons }).toEqual({
      device_class: 'cpu',
      lane: 'bulk',
      reasons: [
        'the model prefers cuda, then cpu',
        'no live worker has it on cuda',
        'a live worker has it on cpu',
      ],
    });
    expect(candidates?.[0]).toMatchObject({ workers: 0, verdict: 'no live worker has it on cuda' });
  });

  it('takes the first choice when no worker is alive, and says so', () => {
    expect(route({ classes: [] })).toMatchObject({
      device_class: 'cuda',
      reasons: [
        'the model prefers cuda, then cpu',
        'no live worker has the model: the request waits for one on cuda, the first choice',
      ],
    });
  });

  it('has one candidate where there is no choice', () => {
    const { reasons, candidates } = route({ affinity: ['cpu'] });
    expect(reasons).toEqual(['the model allows cpu only', 'a live worker has it on cpu']);
    expect(candidates).toHaveLength(1);
  });
});

describe('routeRequest, by expected time', () => {
  const gpu = measured('cuda', 0.001);
  const cpu = measured('cpu', 0.01);

  it('prefers what is done first: rows ahead × seconds per row + the run of its own rows', () => {
    const { device_class, candidates } = route({
      classes: [gpu, cpu],
      rows: 10,
      queuedRows: queued({ cuda: 40, cpu: 3 }),
    });
    expect(device_class).toBe('cuda');
    expect(candidates?.map(({ expected_s }) => expected_s)).toEqual([0.05, 0.13]);
    expect(candidates?.[1]?.verdict).toBe('expected later: 0.13 s against 0.05 s');
  });

  it('spills to the fallback while the preferred class is slower', () => {
    const { device_class, reasons } = route({
      classes: [{ ...gpu, rowsInHand: 32 }, cpu],
      queuedRows: queued({ cuda: 500 }),
    });
    expect(device_class).toBe('cpu');
    expect(reasons.at(-1)).toBe('cuda would take 0.533 s, cpu 0.01 s');
  });

  it('gives a tie, up to 5 %, to the preferred', () => {
    const cuda = { classes: [gpu, cpu], rows: 1 };
    expect(route({ ...cuda, queuedRows: queued({ cuda: 9 }) }).device_class).toBe('cuda');
    const close = { classes: [measured('cuda', 0.0105), cpu] };
    expect(route(close).device_class).toBe('cuda');
    expect(route({ classes: [measured('cuda', 0.0106), cpu] }).device_class).toBe('cpu');
  });

  it('counts what several devices do side by side', () => {
    const many = measured('cpu', 0.01, { ready: 10, secondsPerRow: 0.001 });
    const { candidates } = route({ affinity: ['cpu'], classes: [many], queuedRows: queued({ cpu: 100 }) });
    expect(candidates?.[0]).toMatchObject({ workers: 10, rows_ahead: 100, expected_s: 0.11 });
  });

  it('takes a fallback that was never measured for slow, yet spills to it in the end', () => {
    const classes = [gpu, facts('cpu')];
    expect(route({ classes, queuedRows: queued({ cuda: 5 }) }).device_class).toBe('cuda');
    const spilt = route({ classes, queuedRows: queued({ cuda: 100 }) });
    expect(spilt.device_class).toBe('cpu');
    expect(spilt.reasons.at(-1)).toBe('cuda would take 0.101 s, cpu 0.01 s (not measured, taken for slow)');
  });

  it('tries a preferred class that was never measured', () =>
    expect(route({ classes: [facts('cuda'), cpu] }).device_class).toBe('cuda'));

  it('leaves out a class whose breaker is open', () => {
    const { device_class, reasons, candidates } = route({
      classes: [measured('cuda', 0.001, { ready: 0, broken: 1 }), cpu],
    });
    expect(device_class).toBe('cpu');
    expect(reasons).toContain('its runs keep failing on cuda');
    expect(candidates?.[0]?.expected_s).toBeNull();
  });

  it('takes what is ready before what must be loaded first, and that before what fails', () => {
    const coming = facts('cuda', { ready: 0, coming: 1 });
    expect(route({ classes: [coming, cpu] }).device_class).toBe('cpu');
    const broken = facts('cpu', { ready: 0, broken: 1 });
    const loaded = route({ classes: [coming, broken] });
    expect(loaded.device_class).toBe('cuda');
    expect(loaded.reasons.at(-1)).toBe('it is loaded on cuda first');
    expect(route({ classes: [broken] }).reasons.at(-1)).toBe(
      'its runs keep failing on cpu: the request waits there until they do not',
    );
  });
});

describe('routeRequest, as the request asks', () => {
  it('follows it', () => {
    expect(route({ requested: 'cpu' })).toMatchObject({
      device_class: 'cpu',
      requested: 'cpu',
      reasons: ['the request asks for cpu, which the model allows', 'a live worker has it on cpu'],
    });
  });

  it('waits on the class that was asked for, though another is alive', () => {
    expect(route({ requested: 'cuda', classes: [facts('cpu')] })).toMatchObject({
      device_class: 'cuda',
      reasons: [
        'the request asks for cuda, which the model allows',
        'no live worker has the model: the request waits for one on cuda',
      ],
    });
  });

  it('refuses a class that the rules do not allow, naming those that they do', () => {
    const act = () => route({ requested: 'webgpu' });
    expect(act).toThrow(RemudaError);
    expect(act).toThrow('the model does not run on webgpu; its rules allow cuda, cpu');
    expect(act).toThrow(
      expect.objectContaining({
        code: 'device_not_allowed',
        details: { requested: 'webgpu', allowed: ['cuda', 'cpu'] },
      }),
    );
  });
});
