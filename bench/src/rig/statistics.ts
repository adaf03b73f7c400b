/** Plain statistics of small samples. */

export function median(values: readonly number[]): number {
  return percentile(values, 50);
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
