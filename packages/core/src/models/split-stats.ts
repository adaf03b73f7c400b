/** How the sides of a split do, for people: what the steward judges by. */
import type { ModelDeployment, ServingState } from '@remuda/schemas';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { errorRateOf, type Judgement, judgeCanary, judgedOf } from './canary-judgement.js';
import { quantileOf } from './run-time-histogram.js';
import { servedRef } from './target-refs.js';
import { noCounts, readVersionStats } from './version-stats.js';

export interface SplitSide {
  /** As in the weights: a number or an alias. */
  ref: string;
  version: string;
  weight: number;
  /** Items that ended, errors of their input not counted. */
  requests: number;
  errors: number;
  input_errors: number;
  error_rate: number;
  /** Seconds, to within 4.5 %; null: nothing has run. */
  run_p50_s: number | null;
  run_p95_s: number | null;
}

export interface SplitStats {
  model: string;
  /** The counts are those since this revision of the desired state. */
  revision: number;
  stable: string;
  sides: SplitSide[];
  /** By canary; empty where the split has no rollback rule. */
  judgements: Record<string, Judgement>;
}

export interface SplitStatsFacts {
  redis: Redis;
  keys: Keys;
  deployment: ModelDeployment;
  serving: ServingState | undefined;
}

/** null: the traffic of the model is not split. */
export async function readSplitStats({
  deployment,
  serving,
  ...store
}: SplitStatsFacts): Promise<SplitStats | null> {
  const { split, model, revision } = deployment;
  if (!split) return null;
  const counts = await readVersionStats(store, model, revision);
  const versionOf = (ref: string) => servedRef(ref, deployment, serving) ?? ref;
  const countsOf = (ref: string) => counts.get(versionOf(ref)) ?? noCounts();
  const { stable, weights, rollback } = split;
  const sides = Object.entries(weights).map(([ref, weight]) => {
    const side = countsOf(ref);
    return {
      ref,
      version: versionOf(ref),
      weight,
      requests: judgedOf(side),
      errors: side.modelErrors,
      input_errors: side.inputErrors,
      error_rate: errorRateOf(side),
      run_p50_s: quantileOf(side.runs, 0.5),
      run_p95_s: quantileOf(side.runs, 0.95),
    };
  });
  const canaries = sides.filter(({ version }) => version !== versionOf(stable));
  const judgements = rollback
    ? Object.fromEntries(
        canaries.map(({ ref }) => [ref, judgeCanary(countsOf(stable), countsOf(ref), rollback)]),
      )
    : {};
  return { model, revision, stable, sides, judgements };
}
