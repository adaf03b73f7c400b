import { describe, expect, it } from 'vitest';
import { judgeCanary, type SideCounts } from './canary-judgement.js';
import { bucketOf } from './run-time-histogram.js';

const RULE = { min_requests: 200, max_error_rate_increase: 0.02, max_p95_ratio: 1.5 };

/** A generator of its own, so that every run of this test sees the same requests. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Version {
  errorRate?: number;
  /** Median time of a run. */
  seconds?: number;
  /** Of the logarithm of the time: 1 is a heavy tail. */
  spread?: number;
}

class Side implements SideCounts {
  ok = 0;
  modelErrors = 0;
  inputErrors = 0;
  killed = 0;
  runs = new Map<number, number>();

  constructor(
    readonly version: Version,
    readonly random: () => number,
  ) {}

  end(): void {
    const { errorRate = 0.01, seconds = 0.01, spread = 0.5 } = this.version;
    if (this.random() < errorRate) this.modelErrors++;
    else this.ok++;
    const normal = Math.sqrt(-2 * Math.log(1 - this.random())) * Math.cos(2 * Math.PI * this.random());
    const bucket = bucketOf(seconds * Math.exp(spread * normal));
    this.runs.set(bucket, (this.runs.get(bucket) ?? 0) + 1);
  }
}

/**
 * A split of 20 % looked at after every 50 requests, as the steward looks again and again. The request at which the
 * canary was taken back, or null.
 */
function split(stable: Version, canary: Version, requests: number, seed: number): number | null {
  const random = randomOf(seed);
  const [a, b] = [new Side(stable, random), new Side(canary, random)];
  for (let i = 1; i <= requests; i++) {
    (random() < 0.2 ? b : a).end();
    if (i % 50 === 0 && judgeCanary(a, b, RULE).verdict === 'worse') return i;
  }
  return null;
}

function takenBack(
  stable: Version,
  canary: Version,
  { requests = 3_000, splits = 200 } = {},
): (number | null)[] {
  return Array.from({ length: splits }, (_, seed) => split(stable, canary, requests, seed + 1));
}

const falseAlarms = (version: Version) => takenBack(version, version).filter((at) => at !== null).length;

describe('an equal canary is nearly never taken back, however often it is looked at', () => {
  const cases: [string, Version][] = [
    ['without errors', { errorRate: 0 }],
    ['with 1 % of errors', { errorRate: 0.01 }],
    ['with 5 % of errors', { errorRate: 0.05 }],
    ['with 20 % of errors', { errorRate: 0.2 }],
    ['with times of a heavy tail', { errorRate: 0, spread: 1.2 }],
    ['with times that hardly differ', { errorRate: 0, spread: 0.05 }],
  ];
  it.each(cases)('%s: in at most 1 of 200 splits of 3,000 requests', (_, version) => {
    expect(falseAlarms(version)).toBeLessThanOrEqual(1);
  });
});

describe('a bad canary is soon taken back', () => {
  const cases: [string, Version, Version, number][] = [
    ['that fails every tenth request', { errorRate: 0 }, { errorRate: 0.1 }, 1_400],
    ['with 8 % of errors instead of 1 %', { errorRate: 0.01 }, { errorRate: 0.08 }, 2_500],
    ['of twice the time', { errorRate: 0 }, { errorRate: 0, seconds: 0.02 }, 4_000],
    ['of three times the time, heavy tail', { spread: 1 }, { spread: 1, seconds: 0.03 }, 3_000],
  ];
  it.each(cases)('%s', (_, stable, canary, within) => {
    const found = takenBack(stable, canary, { requests: within, splits: 100 });
    expect(found.filter((at) => at !== null).length).toBeGreaterThanOrEqual(99);
  });
});

describe('what is allowed is left alone', () => {
  it('an error rate that is higher by less than the margin', () => {
    const found = takenBack({ errorRate: 0.01 }, { errorRate: 0.02 }, { splits: 100 });
    expect(found.filter((at) => at !== null).length).toBeLessThanOrEqual(1);
  });

  it('a time that is longer by less than the ratio', () => {
    const found = takenBack({}, { seconds: 0.012 }, { splits: 100 });
    expect(found.filter((at) => at !== null).length).toBeLessThanOrEqual(1);
  });

  it('anything, until both sides have had their minimum of requests', () => {
    const [a, b] = [new Side({ errorRate: 0 }, randomOf(1)), new Side({ errorRate: 1 }, randomOf(2))];
    for (let i = 0; i < 500; i++) a.end();
    for (let i = 0; i < 199; i++) b.end();
    expect(judgeCanary(a, b, RULE)).toMatchObject({
      verdict: 'too_few',
      requests: { stable: 500, canary: 199 },
    });
    b.end();
    expect(judgeCanary(a, b, RULE)).toMatchObject({
      verdict: 'worse',
      by: 'errors',
      error_rate: { canary: 1 },
    });
  });

  it('errors of the input, whatever their number', () => {
    const [a, b] = [new Side({ errorRate: 0 }, randomOf(1)), new Side({ errorRate: 0 }, randomOf(2))];
    for (let i = 0; i < 300; i++) for (const side of [a, b]) side.end();
    b.inputErrors = 10_000;
    expect(judgeCanary(a, b, RULE).verdict).toBe('not_worse');
  });
});

describe('a canary that kills its runner', () => {
  const side = (killed: number, ok: number): SideCounts => ({
    ok,
    modelErrors: 0,
    inputErrors: 0,
    killed,
    runs: new Map(),
  });

  it('is taken back long before there are requests enough to compare', () => {
    expect(judgeCanary(side(0, 60), side(8, 5), RULE)).toMatchObject({ verdict: 'worse', by: 'crashes' });
  });

  it('is not for what one poisonous input costs', () => {
    expect(judgeCanary(side(0, 60), side(7, 5), RULE).verdict).toBe('too_few');
  });

  it('is not where the stable version does the same with the same inputs', () => {
    expect(judgeCanary(side(40, 400), side(10, 100), RULE).verdict).toBe('too_few');
  });
});
