/**
 * Which versions of a model a worker should hold, from its configuration, the desired state and what the fleet serves.
 * Pure, so that the rule can be read and tested in one place:
 *
 *   what was loaded or unloaded by name → what policy, aliases, split and shadow name → what the fleet serves now
 *   (until the next version has taken over, and a while after that) → all others only while a request asks for them
 */
import type { ServingState } from '@remuda/schemas';
import { resolveRef, type TargetFacts, targetRefs, versionsOfPolicy } from './target-refs.js';

/** After another version has taken over, the old one is kept until every API has heard of it. */
export const RETIRE_AFTER_MS = 5_000;

export interface PlanFacts extends TargetFacts {
  serving: ServingState | undefined;
  /** Versions that this worker has loaded. */
  loaded: ReadonlySet<string>;
  /** Unix milliseconds. */
  now: number;
}

export interface PlannedVersion {
  version: string;
  /**
   * load: now. on_demand: when a request asks for it; a loaded one stays. idle: the same, but it goes when it has not
   * been used for a while. off: not unless the admin API says so; a loaded one is drained.
   */
  want: 'load' | 'on_demand' | 'idle' | 'off';
  reason: string;
}

/** One entry for each of `versions`, in their order. */
export function planVersions(facts: PlanFacts): PlannedVersion[] {
  const { deployment, versions } = facts;
  if (!deployment.registered) return versions.map((version) => off(version, 'the model was taken out'));
  const kept = keptVersions(facts);
  const successors = successorsOfLoaded(facts);
  return versions.map((version) => planOf(version, facts, kept, successors));
}

function planOf(
  version: string,
  { deployment, config }: PlanFacts,
  kept: ReadonlyMap<string, string>,
  successors: ReadonlySet<string>,
): PlannedVersion {
  const asked = deployment.loads[version];
  if (asked === 'unloaded') return off(version, 'it was unloaded by name');
  if (asked === 'loaded') return { version, want: 'load', reason: 'it was loaded by name' };
  const mode = deployment.load_mode ?? config.load_mode;
  if (mode === 'explicit') return off(version, 'its load mode is explicit: load it with the admin API');
  const reason = kept.get(version);
  // A request may name any version that is there; the policy says which are kept.
  if (reason === undefined) return { version, want: 'idle', reason: 'outside the version policy' };
  if (mode === 'eager') return { version, want: 'load', reason };
  if (successors.has(version)) return { version, want: 'load', reason: 'takes over from a loaded version' };
  return { version, want: 'on_demand', reason };
}

/** Versions that are kept, with why. */
function keptVersions({ config, deployment, serving, versions, now }: PlanFacts): Map<string, string> {
  const kept = new Map<string, string>();
  const keep = (version: string | null | undefined, reason: string): void => {
    if (version != null && versions.includes(version) && !kept.has(version)) kept.set(version, reason);
  };
  for (const version of versionsOfPolicy(deployment.version_policy ?? config.version_policy, versions)) {
    keep(version, 'by the version policy');
  }
  for (const [alias, version] of Object.entries(deployment.aliases)) keep(version, `alias ${alias}`);
  for (const ref of Object.keys(deployment.split?.weights ?? {})) {
    keep(resolveRef(ref, deployment), 'in the split');
  }
  if (deployment.shadow) keep(resolveRef(deployment.shadow.version, deployment), 'shadow');
  const refs = Object.entries(serving?.refs ?? {});
  const retiring = retiringRefs(serving, now);
  for (const [ref, { version, previous }] of refs) {
    keep(version, `served as ${ref}`);
    if (retiring.includes(ref)) keep(previous, `served as ${ref} until a moment ago`);
  }
  return kept;
}

/** References that have just moved, so that the version before is still kept: what of a plan time alone changes. */
export function retiringRefs(serving: ServingState | undefined, now: number): string[] {
  return Object.entries(serving?.refs ?? {})
    .filter(([, { since }]) => now - Date.parse(since) < RETIRE_AFTER_MS)
    .map(([ref]) => ref);
}

/** A model that is loaded on demand changes its version like any other where it is loaded. */
function successorsOfLoaded(facts: PlanFacts): Set<string> {
  const successors = new Set<string>();
  for (const [ref, target] of targetRefs(facts)) {
    const present = facts.serving?.refs[ref]?.version;
    if (present !== undefined && present !== target && facts.loaded.has(present)) successors.add(target);
  }
  return successors;
}

function off(version: string, reason: string): PlannedVersion {
  return { version, want: 'off', reason };
}
