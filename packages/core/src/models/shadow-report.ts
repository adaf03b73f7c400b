/**
 * How the answers of a shadow version differ from those that were returned: kept in Redis for each revision of the
 * desired state, added to by every worker that compares, read by the admin API.
 */
import type { ModelDeployment } from '@remuda/schemas';
import type { OutputComparison } from '../inference/compare-outputs.js';
import type { Keys } from '../store/keys.js';
import { callScript, type Redis } from '../store/redis.js';
import { bucketOf, quantileOf } from './run-time-histogram.js';

const KEPT_S = 3 * 24 * 3600;
const WORST_KEPT = 5;

/** One item of a request that both versions have ended. */
export interface ItemComparison {
  /** Of the request that was answered. */
  requestId: string;
  item: number;
  /** null: the shadow failed on it. */
  outputs: readonly OutputComparison[] | null;
  /** Only a part of a large output was compared. */
  partly: boolean;
  primaryRunMs: number | null;
  shadowRunMs: number | null;
}

export interface ShadowOutputReport {
  output: string;
  compared: number;
  /** Missing, or of another datatype or shape. */
  incomparable: number;
  max_abs_error: number;
  max_rel_error: number;
  /** Share of slices along the last axis whose highest value is elsewhere; null: there are none. */
  changed_top1: number | null;
}

export interface ShadowReport {
  version: string;
  /** The counts are those since this revision of the desired state. */
  revision: number;
  /** Items that both versions have answered. */
  compared: number;
  /** Items that the shadow failed on and the primary did not. */
  shadow_errors: number;
  /** Items of which a part was compared, as they are large. */
  compared_partly: number;
  outputs: ShadowOutputReport[];
  /** Seconds, to within 4.5 %. */
  primary: { run_p50_s: number | null; run_p95_s: number | null };
  shadow: { run_p50_s: number | null; run_p95_s: number | null };
  /** Requests whose outputs differ most, the worst first; errors are absolute, null where it could not be compared. */
  worst: { request_id: string; item: number; output: string; max_abs_error: number | null }[];
}

/** Above all that can be compared. */
const INCOMPARABLE = Number.MAX_VALUE;

type Change = ['add' | 'max' | 'worst', string, number];

interface ReportStore {
  redis: Redis;
  keys: Keys;
}

export async function addToShadowReport(
  { redis, keys }: ReportStore,
  model: string,
  revision: number,
  items: readonly ItemComparison[],
): Promise<void> {
  const report = keys.shadowReport(model, revision);
  const changes = items.flatMap(changesOf);
  if (changes.length === 0) return;
  await callScript(redis, 'addToReport', [report, worstKey(report)], [KEPT_S, WORST_KEPT, ...changes.flat()]);
}

function changesOf({
  requestId,
  item,
  outputs,
  partly,
  primaryRunMs,
  shadowRunMs,
}: ItemComparison): Change[] {
  if (!outputs) return [['add', 'shadow_errors', 1]];
  const changes: Change[] = [['add', 'compared', 1]];
  if (partly) changes.push(['add', 'partly', 1]);
  if (primaryRunMs !== null) changes.push(['add', `p:${bucketOf(primaryRunMs / 1000)}`, 1]);
  if (shadowRunMs !== null) changes.push(['add', `s:${bucketOf(shadowRunMs / 1000)}`, 1]);
  for (const { output, incomparable, maxAbsError, maxRelError, top1, ok } of outputs) {
    changes.push(['add', `o:n:${output}`, 1]);
    if (incomparable !== null) changes.push(['add', `o:incomparable:${output}`, 1]);
    changes.push(['max', `o:abs:${output}`, maxAbsError], ['max', `o:rel:${output}`, maxRelError]);
    if (top1)
      changes.push(['add', `o:slices:${output}`, top1.slices], ['add', `o:changed:${output}`, top1.changed]);
    if (!ok)
      changes.push(['worst', `${requestId} ${item} ${output}`, incomparable ? INCOMPARABLE : maxAbsError]);
  }
  return changes;
}

/** null: no shadow, or nothing was compared yet. */
export async function readShadowReport(
  { redis, keys }: ReportStore,
  { model, revision, shadow }: Pick<ModelDeployment, 'model' | 'revision' | 'shadow'>,
): Promise<ShadowReport | null> {
  if (!shadow) return null;
  const key = keys.shadowReport(model, revision);
  const [fields, worst] = await Promise.all([
    redis.hgetall(key),
    redis.zrevrange(worstKey(key), 0, WORST_KEPT - 1, 'WITHSCORES'),
  ]);
  if (Object.keys(fields).length === 0) return null;
  const count = (field: string): number => Number(fields[field] ?? 0);
  return {
    version: shadow.version,
    revision,
    compared: count('compared'),
    shadow_errors: count('shadow_errors'),
    compared_partly: count('partly'),
    outputs: outputsOf(fields),
    primary: timesOf(fields, 'p:'),
    shadow: timesOf(fields, 's:'),
    worst: worstOf(worst),
  };
}

function outputsOf(fields: Record<string, string>): ShadowOutputReport[] {
  const names = Object.keys(fields).filter((field) => field.startsWith('o:n:'));
  return names.map((field) => {
    const output = field.slice('o:n:'.length);
    const of = (what: string): number => Number(fields[`o:${what}:${output}`] ?? 0);
    return {
      output,
      compared: of('n'),
      incomparable: of('incomparable'),
      max_abs_error: of('abs'),
      max_rel_error: of('rel'),
      changed_top1: of('slices') > 0 ? of('changed') / of('slices') : null,
    };
  });
}

function timesOf(fields: Record<string, string>, prefix: string): ShadowReport['shadow'] {
  const buckets = Object.entries(fields).filter(([field]) => field.startsWith(prefix));
  const histogram = new Map(buckets.map(([field, n]) => [Number(field.slice(prefix.length)), Number(n)]));
  return { run_p50_s: quantileOf(histogram, 0.5), run_p95_s: quantileOf(histogram, 0.95) };
}

function worstOf(pairs: readonly string[]): ShadowReport['worst'] {
  return Array.from({ length: pairs.length / 2 }, (_, i) => {
    const [request_id = '', item, ...output] = (pairs[2 * i] as string).split(' ');
    const error = Number(pairs[2 * i + 1]);
    const max_abs_error = error === INCOMPARABLE ? null : error;
    return { request_id, item: Number(item), output: output.join(' '), max_abs_error };
  });
}

function worstKey(report: string): string {
  return `${report}:worst`;
}
