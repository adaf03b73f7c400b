/** Whether memory grows with the file: the highest RSS of each kind of process at 100,000 rows, and at all of them. */
import { round } from '../../rig/statistics.js';
import { type BulkFileFigures, rounded } from './compare-bulk.js';
import type { OwnRun } from './own-side.js';

export interface FlatnessFigures {
  few_rows: number;
  many_rows: number;
  few_mb: Record<string, number>;
  many_mb: Record<string, number>;
  /** Of the process that grew most. */
  most_growth_mb: number;
  redis_few_mb: number;
  redis_many_mb: number;
}

export function flatnessOf(few: OwnRun, many: BulkFileFigures): FlatnessFigures {
  const fewMb = rounded(few.memory.byRole);
  const growth = Object.entries(many.rss_mb).map(([role, mb]) => mb - (fewMb[role] ?? 0));
  return {
    few_rows: few.rows,
    many_rows: many.rows,
    few_mb: fewMb,
    many_mb: many.rss_mb,
    most_growth_mb: round(Math.max(...growth), 1),
    redis_few_mb: round(few.memory.redisData, 1),
    redis_many_mb: many.redis_data_mb,
  };
}
