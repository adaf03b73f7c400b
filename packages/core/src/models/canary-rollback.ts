/**
 * Takes back canaries that are worse than the stable version: their weight goes to the stable side, which stays the
 * split's, so that default goes on leading there though the canary may be the newest version. For the steward.
 *
 * A canary whose breaker is open wherever it is loaded is taken back at once: its jobs are no longer run, so that it
 * might never get to the minimum of requests.
 */
import type { ModelDeployment } from '@remuda/schemas';
import type { Logger } from '../observability/logger.js';
import type { Metrics } from '../observability/metrics.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import type { Judgement } from './canary-judgement.js';
import type { DeploymentView } from './deployment-view.js';
import { readSplitStats, type SplitStats } from './split-stats.js';

export interface RollbackDeps {
  redis: Redis;
  keys: Keys;
  view: DeploymentView;
  metrics: Pick<Metrics, 'canaryRollbacks'>;
  logger: Logger;
  /** Whether the runs of a version keep failing wherever it is loaded. */
  isBroken(model: string, version: string): boolean;
}

export async function rollBackBadCanaries(deps: RollbackDeps): Promise<void> {
  for (const deployment of deps.view.deployments.values()) {
    const { split, registered } = deployment;
    if (registered && split?.rollback && Object.keys(split.weights).length > 1) await judge(deployment, deps);
  }
}

async function judge(deployment: ModelDeployment, deps: RollbackDeps): Promise<void> {
  const serving = deps.view.serving(deployment.model);
  const stats = await readSplitStats({ ...deps, deployment, serving });
  if (!stats) return;
  const worse = Object.keys(stats.judgements).flatMap((ref) => reasonAgainst(ref, stats, deps));
  // One at a time: it changes the revision, and what is left is compared anew.
  if (worse[0]) await rollBack(deployment, stats, worse[0], deps);
}

interface Verdict {
  ref: string;
  by: 'errors' | 'latency' | 'crashes' | 'breaker';
}

function reasonAgainst(
  ref: string,
  { model, stable, sides, judgements }: SplitStats,
  deps: RollbackDeps,
): Verdict[] {
  const versionOf = (wanted: string) => sides.find((side) => side.ref === wanted)?.version ?? wanted;
  const by = judgements[ref]?.by;
  if (by) return [{ ref, by }];
  const isBroken = deps.isBroken(model, versionOf(ref)) && !deps.isBroken(model, versionOf(stable));
  return isBroken ? [{ ref, by: 'breaker' }] : [];
}

async function rollBack(
  deployment: ModelDeployment,
  { sides, judgements }: SplitStats,
  { ref, by }: Verdict,
  { view, metrics, logger }: RollbackDeps,
): Promise<void> {
  const { model, revision } = deployment;
  const { verdict: _, by: __, ...figures } = judgements[ref] as Judgement;
  const version = sides.find((side) => side.ref === ref)?.version;
  const detail = { canary: ref, version, by, rule: deployment.split?.rollback, ...figures };
  try {
    await view.store.edit({
      model,
      who: 'fleet',
      what: 'rolled_back',
      detail,
      change: (current) => {
        // Judged by what is no longer in force: the next turn sees.
        if (current.revision !== revision) throw new Overtaken();
        return withoutCanary(current, ref);
      },
    });
  } catch (error) {
    if (error instanceof Overtaken) return;
    throw error;
  }
  metrics.canaryRollbacks.inc({ model, by });
  logger.warn({ model, ...detail }, 'canary taken back: worse than the stable version');
  await view.refresh();
}

class Overtaken extends Error {}

/** @throws never: where there is no split any more, nothing is changed */
export function withoutCanary(deployment: ModelDeployment, ref: string): ModelDeployment {
  const { split } = deployment;
  if (!split) return deployment;
  const { [ref]: taken = 0, ...weights } = split.weights;
  weights[split.stable] = (weights[split.stable] ?? 0) + taken;
  return { ...deployment, split: { ...split, weights } };
}
