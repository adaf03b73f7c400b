/**
 * What the worker has measured of one model version on one device: seconds of a run by rows and shape, and seconds a
 * row while there is enough to do. Routing, deadlines and ETA are told of it by the heartbeat. Pure; time is passed in.
 *
 * Robust: every figure is a quantile of the last runs (64 for each shape and size of a run), so one slow run moves
 * nothing, and what has changed shows after a few dozen runs. Bounded: of shapes the 32 used last are kept.
 */

/** One native run. */
export interface MeasuredRun {
  rows: number;
  seconds: number;
}

export interface RunProfileOptions {
  /** Sessions side by side. */
  instances: number;
  /** Most rows of a run: what a run is when there is enough to do. */
  maxRows: number;
}

const RUNS_KEPT = 64;
const SHAPES_KEPT = 32;
/** Stretches of saturation kept; each is one batch. */
const BUSY_KEPT = 64;
/** Fewer saturated batches than this say too little. */
const BUSY_NEEDED = 8;

export class RunProfile {
  #options: RunProfileOptions;
  /** By shape, the one used last at the end. */
  readonly #shapes = new Map<string, SizedRuns>();
  readonly #all = new SizedRuns();
  readonly #busy = new BusyMeter();

  constructor(options: RunProfileOptions) {
    this.#options = options;
  }

  /** Instances or batch size have changed: what was measured of their throughput holds no more. */
  reconfigure(options: RunProfileOptions): void {
    const { instances, maxRows } = this.#options;
    if (instances === options.instances && maxRows === options.maxRows) return;
    this.#options = options;
    this.#busy.forget();
  }

  /** A batch is on its way. */
  began(): void {
    this.#busy.began();
  }

  /** It has come back, well or not. @param at milliseconds @param rows that were run of it */
  ended(at: number, rows: number): void {
    this.#busy.ended(at, rows, this.#options.instances);
  }

  /** @param shape what tells runs of different work apart beside their rows: the compatibility group */
  measured({ rows, seconds }: MeasuredRun, shape: string): void {
    if (rows < 1 || !(seconds > 0)) return;
    this.#all.add(rows, seconds);
    const runs = this.#shapes.get(shape) ?? new SizedRuns();
    this.#shapes.delete(shape);
    this.#shapes.set(shape, runs);
    runs.add(rows, seconds);
    if (this.#shapes.size > SHAPES_KEPT) this.#shapes.delete(this.#shapes.keys().next().value as string);
  }

  /**
   * Seconds a row while there is enough to do, all instances together: measured where it was so busy that a batch
   * waited behind each instance, else reckoned from the run of a full batch. null: nothing was measured.
   */
  get secondsPerRow(): number | null {
    const busy = this.#busy.secondsPerRow;
    if (busy !== null) return busy;
    const { maxRows, instances } = this.#options;
    const full = this.runSeconds(maxRows);
    return full === null ? null : full / maxRows / instances;
  }

  /** Median of a run: of `rows` rows, where given, and of a shape, where that is known; null: nothing was measured. */
  runSeconds(rows?: number, shape?: string): number | null {
    const runs = (shape === undefined ? undefined : this.#shapes.get(shape)) ?? this.#all;
    return rows === undefined ? runs.quantile(0.5) : runs.ofRows(rows, 0.5);
  }

  /** The same at the 95th percentile. */
  p95(rows?: number, shape?: string): number | null {
    const runs = (shape === undefined ? undefined : this.#shapes.get(shape)) ?? this.#all;
    return rows === undefined ? runs.quantile(0.95) : runs.ofRows(rows, 0.95);
  }
}

/** The last runs of one shape: all together, and by size in powers of two. */
class SizedRuns {
  readonly #latest = new Latest(RUNS_KEPT);
  /** By the exponent of the size class: class k holds runs of more than 2^(k-1) and at most 2^k rows. */
  readonly #classes = new Map<number, { seconds: Latest; rows: Latest }>();

  add(rows: number, seconds: number): void {
    this.#latest.add(seconds);
    const size = Math.ceil(Math.log2(rows));
    let found = this.#classes.get(size);
    if (!found) {
      found = { seconds: new Latest(RUNS_KEPT), rows: new Latest(RUNS_KEPT) };
      this.#classes.set(size, found);
    }
    found.seconds.add(seconds);
    found.rows.add(rows);
  }

  quantile(q: number): number | null {
    return this.#latest.quantile(q);
  }

  /**
   * Between two sizes that were measured: on the line through them. Below the smallest: as long as that, since a run
   * has a fixed part. Above the largest: in proportion to the rows.
   */
  ofRows(rows: number, q: number): number | null {
    let below: Point | undefined;
    let above: Point | undefined;
    for (const { seconds, rows: counts } of this.#classes.values()) {
      const point = { rows: counts.quantile(0.5) as number, seconds: seconds.quantile(q) as number };
      if (point.rows <= rows && (!below || point.rows > below.rows)) below = point;
      if (point.rows >= rows && (!above || point.rows < above.rows)) above = point;
    }
    if (below && above) return between(below, above, rows);
    if (below) return (below.seconds * rows) / below.rows;
    return above?.seconds ?? null;
  }
}

interface Point {
  rows: number;
  seconds: number;
}

function between(a: Point, b: Point, rows: number): number {
  if (a.rows === b.rows) return a.seconds;
  return a.seconds + ((b.seconds - a.seconds) * (rows - a.rows)) / (b.rows - a.rows);
}

/**
 * Throughput while saturated: more batches on their way than there are instances, so that each instance has its next
 * the moment it ends one. The time between two ends counts when both found it so; a lone request, whose time says
 * nothing about throughput, counts never.
 */
class BusyMeter {
  #onTheWay = 0;
  /** The last end, where that found it saturated. */
  #since: number | null = null;
  #stretches: { rows: number; ms: number }[] = [];

  began(): void {
    this.#onTheWay++;
  }

  ended(at: number, rows: number, instances: number): void {
    const saturated = this.#onTheWay > instances;
    if (saturated && this.#since !== null) {
      this.#stretches.push({ rows, ms: Math.max(0, at - this.#since) });
      if (this.#stretches.length > BUSY_KEPT) this.#stretches.shift();
    }
    this.#since = saturated ? at : null;
    this.#onTheWay--;
  }

  forget(): void {
    this.#since = null;
    this.#stretches = [];
  }

  get secondsPerRow(): number | null {
    if (this.#stretches.length < BUSY_NEEDED) return null;
    const kept = withoutStalls(this.#stretches);
    const rows = kept.reduce((sum, stretch) => sum + stretch.rows, 0);
    const ms = kept.reduce((sum, stretch) => sum + stretch.ms, 0);
    return rows > 0 && ms > 0 ? ms / 1000 / rows : null;
  }
}

/** Up to this many of the longest stretches are left out, where they are so many times longer than the others' mean. */
const STALLS = { most: 3, times: 8 };

function withoutStalls<Stretch extends { ms: number }>(stretches: readonly Stretch[]): Stretch[] {
  const sorted = [...stretches].sort((a, b) => a.ms - b.ms);
  const usual = sorted.slice(0, -STALLS.most);
  const longest = (STALLS.times * usual.reduce((sum, { ms }) => sum + ms, 0)) / usual.length;
  return sorted.filter(({ ms }, at) => at < usual.length || ms <= longest);
}

/** A window of the last numbers. */
class Latest {
  readonly #size: number;
  #values: number[] = [];
  #next = 0;
  #sorted: number[] | undefined;

  constructor(size: number) {
    this.#size = size;
  }

  add(value: number): void {
    this.#values[this.#next] = value;
    this.#next = (this.#next + 1) % this.#size;
    this.#sorted = undefined;
  }

  /** Nearest rank; null: empty. */
  quantile(q: number): number | null {
    this.#sorted ??= [...this.#values].sort((a, b) => a - b);
    const rank = Math.max(0, Math.ceil(q * this.#sorted.length) - 1);
    return this.#sorted[rank] ?? null;
  }
}
