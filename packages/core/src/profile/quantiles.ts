/** Nearest-rank quantiles. Pure. */

/** @param q 0 to 1 @returns NaN for no values */
export function quantileOf(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

export function medianOf(values: readonly number[]): number {
  return quantileOf(values, 0.5);
}
