/**
 * Which of the measured settings to take. Pure.
 *
 * Rule: the highest throughput among those whose p95 of a run meets the latency objective, if one is given; of those
 * within 2 % of it the one with the smallest batch, then the fewest threads in all, then the fewest instances (memory).
 */
export interface Setting {
  batch: number;
  instances: number;
  threads: number;
}

export interface SweepPoint extends Setting {
  rowsPerS: number;
  /** Of a native run. */
  p50Ms: number;
  p95Ms: number;
  rssBytes: number;
}

/** Throughputs closer than this are taken for equal. */
export const EQUAL_WITHIN = 0.02;

export interface Recommendation {
  point: SweepPoint;
  /** Highest throughput of those that were allowed. */
  bestRowsPerS: number;
  /** False: none meets the objective; then it is the one with the lowest p95. */
  meetsObjective: boolean;
}

/** @throws RangeError for no points */
export function recommend(points: readonly SweepPoint[], latencyMs?: number): Recommendation {
  const allowed = points.filter(({ p95Ms }) => latencyMs === undefined || p95Ms <= latencyMs);
  if (points.length === 0) throw new RangeError('nothing was measured');
  if (allowed.length === 0) {
    const point = points.reduce((best, other) => (other.p95Ms < best.p95Ms ? other : best));
    return { point, bestRowsPerS: point.rowsPerS, meetsObjective: false };
  }
  const bestRowsPerS = Math.max(...allowed.map(({ rowsPerS }) => rowsPerS));
  const equal = allowed.filter(({ rowsPerS }) => rowsPerS >= bestRowsPerS * (1 - EQUAL_WITHIN));
  const [point] = equal.sort(
    (a, b) =>
      a.batch - b.batch ||
      a.instances * a.threads - b.instances * b.threads ||
      a.instances - b.instances ||
      b.rowsPerS - a.rowsPerS,
  );
  return { point: point as SweepPoint, bestRowsPerS, meetsObjective: true };
}
