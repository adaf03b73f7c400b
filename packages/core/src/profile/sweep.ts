/**
 * Finds the best setting of a model without measuring all of them. Pure but for `measure`, which is passed in: the
 * search is tested with simulated models.
 *
 * Rule, coarse to fine:
 * 1. Every pair of instances × threads that fits the cores is measured, those that use all cores first, with the
 *    batch sizes 1, 4, 16, … ascending. A pair is left when its last two sizes were both below 0.9 of its own best (larger ones will
 *    not be better), or when after two sizes its best is below 0.6 of the best of all.
 * 2. Of the two best pairs, the sizes between and beside (half and double, three quarters and one and a half) their
 *    best size are measured.
 * 3. All within 7 % of the best (six at most) are measured again, turn by turn, until each has `repeats`; the median of
 *    a setting counts.
 * `exhaustive` measures every pair with every power of two instead, each `repeats` times, turn by turn.
 */
import { medianOf } from './quantiles.js';
import { type Recommendation, recommend, type Setting, type SweepPoint } from './recommendation.js';

export interface SweepOptions {
  /** Measures one setting once. @throws Error: the setting cannot be run; it is left out */
  measure(setting: Setting): Promise<SweepPoint>;
  cores: number;
  /** Largest batch; 1 for a model that cannot be batched. */
  maxBatch: number;
  latencyMs?: number;
  /** Measurements of each setting that may be recommended. Default 3. */
  repeats?: number;
  exhaustive?: boolean;
  /** Measures just these, once each. */
  only?: readonly Setting[];
  onMeasured?(point: SweepPoint, count: number): void;
  /** A setting that could not be run. */
  onFailed?(setting: Setting, error: Error): void;
}

export interface SweepResult {
  /** Medians of what was measured of each setting, by threads, instances and batch. */
  points: SweepPoint[];
  /** Single measurements. */
  measurements: number;
  recommendation: Recommendation;
}

const OWN_DROP = 0.9;
const HOPELESS = 0.6;
const PAIRS_REFINED = 2;
const FINALISTS = { within: 0.07, most: 6 };

export async function sweep(options: SweepOptions): Promise<SweepResult> {
  const found = new Measurements(options);
  const pairs = pairsOf(options.cores);
  if (options.only) for (const setting of options.only) await found.add(setting);
  else if (options.exhaustive) await measureAll(found, pairs, options);
  else {
    for (const pair of pairs) await measureCoarsely(found, pair, options.maxBatch);
    for (const best of found.bestOfPairs().slice(0, PAIRS_REFINED)) {
      for (const batch of besideOf(best.batch, options.maxBatch)) await found.add({ ...best, batch });
    }
    await repeatFinalists(found, options.repeats ?? 3);
  }
  const points = found.points();
  if (points.length === 0) throw found.lastError ?? new Error('nothing could be measured');
  return { points, measurements: found.count, recommendation: recommend(found.settled(), options.latencyMs) };
}

/**
 * Pairs that keep no more threads busy than there are cores, fewest first. */
export function pairsOf(cores: number): { instances: number; threads: number }[] {
  const counts = [...new Set([...powersOfTwo(cores), cores])];
  return counts
    .flatMap((instances) => counts.map((threads) => ({ instances, threads })))
    .filter(({ instances, threads }) => instances * threads <= cores)
    .sort((a, b) => b.instances * b.threads - a.instances * a.threads || a.threads - b.threads);
}

export function powersOfTwo(most: number): number[] {
  return Array.from({ length: Math.floor(Math.log2(most)) + 1 }, (_, exponent) => 2 ** exponent);
}

async function measureAll(
  found: Measurements,
  pairs: readonly Omit<Setting, 'batch'>[],
  { maxBatch, repeats = 3 }: SweepOptions,
): Promise<void> {
  for (let round = 0; round < repeats; round++) {
    for (const pair of pairs) for (const batch of powersOfTwo(maxBatch)) await found.add({ ...pair, batch });
  }
}

async function measureCoarsely(
  found: Measurements,
  pair: Omit<Setting, 'batch'>,
  maxBatch: number,
): Promise<void> {
  let own = 0;
  let drops = 0;
  for (const [index, batch] of powersOfTwo(maxBatch)
    .filter((_, exponent) => exponent % 2 === 0)
    .entries()) {
    const point = await found.add({ ...pair, batch });
    if (!point) return;
    own = Math.max(own, point.rowsPerS);
    drops = point.rowsPerS < OWN_DROP * own ? drops + 1 : 0;
    if (drops >= 2 || (index >= 1 && own < HOPELESS * found.best)) return;
  }
}

function besideOf(batch: number, maxBatch: number): number[] {
  const sizes = [batch / 2, batch * 0.75, batch * 1.5, batch * 2].map(Math.round);
  return [...new Set(sizes)].filter((size) => size >= 1 && size <= maxBatch && size !== batch);
}

async function repeatFinalists(found: Measurements, repeats: number): Promise<void> {
  const finalists = found.finalists();
  for (let round = 1; round < repeats; round++) for (const finalist of finalists) await found.add(finalist);
}

class Measurements {
  readonly #options: SweepOptions;
  readonly #byKey = new Map<string, SweepPoint[]>();
  count = 0;
  lastError: Error | undefined;

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  /** undefined: it cannot be run. */
  async add({ batch, instances, threads }: Setting): Promise<SweepPoint | undefined> {
    const setting = { batch, instances, threads };
    try {
      const point = { ...(await this.#options.measure(setting)), ...setting };
      const key = `${threads} ${instances} ${batch}`;
      this.#byKey.set(key, [...(this.#byKey.get(key) ?? []), point]);
      this.count++;
      this.#options.onMeasured?.(point, this.count);
      return point;
    } catch (error) {
      this.lastError = error as Error;
      this.#options.onFailed?.(setting, error as Error);
      return undefined;
    }
  }

  get best(): number {
    return Math.max(0, ...this.points().map(({ rowsPerS }) => rowsPerS));
  }

  points(): SweepPoint[] {
    return [...this.#byKey.values()]
      .map(median)
      .sort((a, b) => a.threads - b.threads || a.instances - b.instances || a.batch - b.batch);
  }

  /** Those measured most often: a single lucky measurement must not win. */
  settled(): SweepPoint[] {
    const all = [...this.#byKey.values()];
    const most = Math.max(...all.map((points) => points.length));
    return all.filter((points) => points.length === most).map(median);
  }

  /** The best size of each pair, the best pair first. */
  bestOfPairs(): SweepPoint[] {
    const best = new Map<string, SweepPoint>();
    for (const point of this.#allowed()) {
      const key = `${point.threads} ${point.instances}`;
      if (point.rowsPerS > (best.get(key)?.rowsPerS ?? 0)) best.set(key, point);
    }
    return [...best.values()].sort((a, b) => b.rowsPerS - a.rowsPerS);
  }

  finalists(): SweepPoint[] {
    const sorted = this.#allowed().sort((a, b) => b.rowsPerS - a.rowsPerS);
    const least = (sorted[0]?.rowsPerS ?? 0) * (1 - FINALISTS.within);
    return sorted.filter(({ rowsPerS }) => rowsPerS >= least).slice(0, FINALISTS.most);
  }

  /** Those that meet the objective; all, where none does. */
  #allowed(): SweepPoint[] {
    const { latencyMs = Number.POSITIVE_INFINITY } = this.#options;
    const points = this.points();
    const allowed = points.filter(({ p95Ms }) => p95Ms <= latencyMs);
    return allowed.length > 0 ? allowed : points;
  }
}

function median(points: readonly SweepPoint[]): SweepPoint {
  const of = (read: (point: SweepPoint) => number): number => medianOf(points.map(read));
  return {
    ...(points[0] as SweepPoint),
    rowsPerS: of(({ rowsPerS }) => rowsPerS),
    p50Ms: of(({ p50Ms }) => p50Ms),
    p95Ms: of(({ p95Ms }) => p95Ms),
    rssBytes: Math.max(...points.map(({ rssBytes }) => rssBytes)),
  };
}
