/** Plain statistics of small samples. */

/** The middle one, or the mean of the middle two; 0 for no values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

/** The item whose value is nearest to `target`; the items are not empty. */
export function nearest<T>(items: readonly T[], target: number, figureOf: (item: T) => number): T {
  return items.reduce((best, item) =>
    Math.abs(figureOf(item) - target) < Math.abs(figureOf(best) - target) ? item : best,
  );
}

/** Nearest rank; 0 for no values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0;
}

export function round(value: number, digits = 2): number {
  return Number(value.toFixed(digits));
}

/** Slope of the least-squares line through points [x, y]. */
export function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (pick: 0 | 1): number => points.reduce((sum, point) => sum + point[pick], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  let above = 0;
  let below = 0;
  for (const [x, y] of points) {
    above += (x - meanX) * (y - meanY);
    below += (x - meanX) ** 2;
  }
  return below === 0 ? 0 : above / below;
}
