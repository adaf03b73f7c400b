/**
 * The configuration that a version is served with: model.yaml, with what its desired state sets in place of it; and
 * what has to happen to a loaded version when that changes. Pure.
 */
import type { HarnessConfig, ModelDeployment } from '@remuda/schemas';
import { IDENTITY_KEYS, stableJson } from '../repository/version-digest.js';

/** Take effect only in a new session: the version is loaded again beside the old. */
const RELOAD_KEYS = [
  'intra_op_threads',
  'warmup',
  'affinity',
  'device',
] as const satisfies readonly (keyof HarnessConfig)[];

export type ServedDeployment = Pick<ModelDeployment, 'load_mode' | 'pinned' | 'instances' | 'settings'>;

/**
 * @param mostInstances what this worker allows; default no limit
 */
export function effectiveConfig(
  config: HarnessConfig,
  { load_mode, pinned, instances, settings }: ServedDeployment,
  mostInstances = Number.POSITIVE_INFINITY,
): HarnessConfig {
  const { latency_objective_ms: objective, result_cache: cache, ...others } = settings;
  const effective: HarnessConfig = {
    ...config,
    ...defined(others),
    ...(objective == null ? {} : { latency_objective_ms: objective }),
    ...(cache == null ? {} : { result_cache: cache }),
    load_mode: load_mode ?? config.load_mode,
    pinned: pinned ?? config.pinned,
    instances: Math.min(instances ?? config.instances, mostInstances),
  };
  // null: taken away, though model.yaml has one.
  if (objective === null) delete effective.latency_objective_ms;
  if (cache === null) delete effective.result_cache;
  return effective;
}

export type ConfigChange =
  | { kind: 'none' | 'live' }
  /** The number of instances, whatever else changed live. */
  | { kind: 'scale' }
  | { kind: 'reload'; because: (keyof HarnessConfig)[] };

/** The least that makes a version that was loaded with one configuration as if it had been loaded with another. */
export function configChange(loaded: HarnessConfig, wanted: HarnessConfig): ConfigChange {
  if (loaded === wanted) return { kind: 'none' };
  const because = [...IDENTITY_KEYS, ...RELOAD_KEYS].filter((key) => differs(loaded[key], wanted[key]));
  if (because.length > 0) return { kind: 'reload', because };
  if (loaded.instances !== wanted.instances) return { kind: 'scale' };
  return { kind: differs(loaded, wanted) ? 'live' : 'none' };
}

function differs(a: unknown, b: unknown): boolean {
  if (a === b) return false;
  const mayBeAlike = typeof a === 'object' && typeof b === 'object';
  return !mayBeAlike || stableJson(a) !== stableJson(b);
}

function defined<T extends object>(values: T): T {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T;
}
