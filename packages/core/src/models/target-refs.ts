/**
 * What each reference of a model (`default` and the aliases) is meant to lead to, from its configuration and desired
 * state. Pure. Where it leads at present is the steward's ServingState: it follows when the version is ready.
 */
import {
  DEFAULT_REF,
  type HarnessConfig,
  type ModelDeployment,
  type ServingState,
  type VersionPolicy,
} from '@remuda/schemas';

export interface TargetFacts {
  config: Pick<HarnessConfig, 'version_policy' | 'load_mode'>;
  deployment: ModelDeployment;
  /** Numbers of the versions whose files are all there, lowest first. */
  versions: readonly string[];
}

/** The version by reference; a reference to a version that is not there is left out. */
export function targetRefs(facts: TargetFacts): Map<string, string> {
  const { deployment, versions } = facts;
  const targets = new Map<string, string>();
  for (const [alias, version] of Object.entries(deployment.aliases)) {
    if (versions.includes(version)) targets.set(alias, version);
  }
  const byDefault = defaultTarget(facts);
  if (byDefault !== undefined) targets.set(DEFAULT_REF, byDefault);
  return targets;
}

/** The stable side of a split, the alias stable, else the newest version that is to be kept. */
function defaultTarget({ config, deployment, versions }: TargetFacts): string | undefined {
  const named = deployment.split
    ? resolveRef(deployment.split.stable, deployment)
    : deployment.aliases.stable;
  if (named !== undefined && versions.includes(named)) return named;
  const mayServe = versions.filter((version) => deployment.loads[version] !== 'unloaded');
  const byName = mayServe.filter((version) => deployment.loads[version] === 'loaded');
  if ((deployment.load_mode ?? config.load_mode) === 'explicit') return byName.at(-1);
  return versionsOfPolicy(deployment.version_policy ?? config.version_policy, mayServe).at(-1);
}

/** Versions that a policy keeps, lowest first. */
export function versionsOfPolicy(policy: VersionPolicy, versions: readonly string[]): readonly string[] {
  if (policy === 'all') return versions;
  if (policy === 'latest') return versions.slice(-1);
  if ('latest' in policy) return versions.slice(-policy.latest);
  return versions.filter((version) => policy.only.includes(version));
}

/** The version that a number or alias is meant to be; undefined: there is no such alias. */
export function resolveRef(ref: string, { aliases }: Pick<ModelDeployment, 'aliases'>): string | undefined {
  if (/^\d/.test(ref)) return ref;
  // Every object answers for "constructor".
  return Object.hasOwn(aliases, ref) ? aliases[ref] : undefined;
}

/** The version that a number or alias leads to at present; undefined: there is no such alias. */
export function servedRef(
  ref: string,
  deployment: Pick<ModelDeployment, 'aliases'>,
  serving: ServingState | undefined,
): string | undefined {
  const wanted = resolveRef(ref, deployment);
  // An alias that was taken away leads nowhere, though the steward may not have noticed yet.
  return wanted === undefined || /^\d/.test(ref) ? wanted : (serving?.refs[ref]?.version ?? wanted);
}
