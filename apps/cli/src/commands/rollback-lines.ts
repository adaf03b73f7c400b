/** The canaries of the split in force that the fleet has taken back, from the model's history: which, when and why. */
import type { ModelEvent } from '@remuda/schemas';
import * as z from 'zod';
import { milliseconds, percent } from '../terminal/figures.js';

/** How far back is looked for the beginning of the split. */
export const EVENTS_LOOKED_AT = 200;

const BEGINNINGS: readonly string[] = ['split_set', 'split_removed', 'unregistered'];

const pair = <Value extends z.ZodType>(value: Value) => z.object({ stable: value, canary: value });

const Rollback = z.object({
  canary: z.string(),
  version: z.string().optional(),
  by: z.string(),
  error_rate: pair(z.number()).optional(),
  run_p95_s: pair(z.number().nullable()).optional(),
});

/** @param events newest first */
export function rollbackLines(events: readonly ModelEvent[]): string[] {
  const begun = events.findIndex(({ what }) => BEGINNINGS.includes(what));
  const ofSplit = begun < 0 ? events : events.slice(0, begun);
  return ofSplit.filter(({ what }) => what === 'rolled_back').flatMap(rollbackLine);
}

function rollbackLine({ at, detail }: ModelEvent): string[] {
  const read = Rollback.safeParse(detail);
  if (!read.success) return [];
  const { canary, version = canary } = read.data;
  const alias = version === canary ? '' : ` (${canary})`;
  return [
    `version ${version}${alias} was taken back at ${at.replace(/\.\d+Z$/, 'Z')}: ${reasonOf(read.data)}`,
  ];
}

function reasonOf({ by, error_rate, run_p95_s }: z.infer<typeof Rollback>): string {
  if (by === 'breaker') return 'its runs kept failing wherever it was loaded';
  if (by === 'errors' && error_rate)
    return `${percent(error_rate.canary)} errors, the stable version ${percent(error_rate.stable)}`;
  if (by === 'latency' && run_p95_s)
    return `p95 of runs ${time(run_p95_s.canary)}, the stable version ${time(run_p95_s.stable)}`;
  return by;
}

function time(seconds: number | null): string {
  return seconds === null ? 'unknown' : `${milliseconds(seconds * 1_000)} ms`;
}
