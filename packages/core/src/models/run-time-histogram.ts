/**
 * Times in buckets that grow by the eighth root of two: a quantile is told to within 4.5 % of its true value. Sparse:
 * a version whose runs are alike fills a handful of buckets, so a histogram is small in memory and in Redis.
 */

const PER_DOUBLING = 8;
/** Lower edge of bucket 0, in seconds; what is faster is counted there. */
const FIRST_S = 0.000_05;
/** Above an hour all are alike. */
const LAST_BUCKET = PER_DOUBLING * 26;

/** How far a quantile may be from the truth, as a factor: the half of a bucket. */
export const QUANTILE_ERROR = 2 ** (0.5 / PER_DOUBLING) - 1;

/** Counts by bucket. */
export type Histogram = ReadonlyMap<number, number>;

export function bucketOf(seconds: number): number {
  if (!(seconds > FIRST_S)) return 0;
  return Math.min(LAST_BUCKET, Math.floor(PER_DOUBLING * Math.log2(seconds / FIRST_S)));
}

/** In seconds. */
export function lowerEdge(bucket: number): number {
  return FIRST_S * 2 ** (bucket / PER_DOUBLING);
}

export function totalOf(histogram: Histogram): number {
  let total = 0;
  for (const count of histogram.values()) total += count;
  return total;
}

/** In seconds, the geometric middle of its bucket; null where nothing was counted. @param share 0.95 for the p95 */
export function quantileOf(histogram: Histogram, share: number): number | null {
  const rank = Math.ceil(totalOf(histogram) * share);
  let seen = 0;
  for (const bucket of [...histogram.keys()].sort((a, b) => a - b)) {
    seen += histogram.get(bucket) as number;
    if (seen >= rank && seen > 0) return lowerEdge(bucket + 0.5);
  }
  return null;
}

/** How many were surely above: only buckets that begin there are counted. */
export function countAbove(histogram: Histogram, seconds: number): number {
  let count = 0;
  for (const [bucket, n] of histogram) if (lowerEdge(bucket) >= seconds) count += n;
  return count;
}
