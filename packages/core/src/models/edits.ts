/**
 * Each edit of a model's desired state as a function from the state there is to the one that is wanted; throws where it
 * makes no sense, so that what served goes on serving. Pure; edit-models.ts writes what they give.
 */
import {
  DEFAULT_REF,
  type ModelDeployment,
  type ModelPatch,
  type ModelRegistration,
  refuse,
  type ShadowRule,
  type TrafficSplit,
} from '@remuda/schemas';
import { untouched } from './deployments.js';
import { noSuchAlias, noSuchVersion } from './resolve-version.js';
import { resolveRef } from './target-refs.js';

/** Settings of which null is a value: what model.yaml has is taken away. */
const NULL_SETTINGS = ['latency_objective_ms', 'result_cache'];

export type Change = (current: ModelDeployment) => ModelDeployment;

/** What is not given stays as it is. */
export function registered(
  { name: _, source: __, settings, digests, ...given }: ModelRegistration,
  source: Record<string, unknown> | undefined,
): Change {
  return (current) => ({
    ...current,
    ...given,
    registered: true,
    source: source ?? current.source,
    settings: { ...current.settings, ...settings },
    digests: { ...current.digests, ...digests },
  });
}

/** Nothing stays of what was wanted of it. */
export const takenOut: Change = (current) => ({
  ...untouched(current.model),
  revision: current.revision,
  registered: false,
});

export function patched({ settings, digests, ...given }: ModelPatch): Change {
  return (current) => ({
    ...current,
    ...given,
    settings:
      settings === null ? {} : (merged(current.settings, settings, NULL_SETTINGS) as typeof current.settings),
    digests: merged(current.digests, digests),
  });
}

/** @param version undefined: the newest, and none is held back by name any more */
export function loaded(version: string | undefined, versions: readonly string[]): Change {
  return (current) => {
    const number =
      version === undefined ? newestOf(current.model, versions) : knownVersion(version, current, versions);
    const byName = Object.entries(current.loads).filter(
      ([, state]) => version !== undefined || state === 'loaded',
    );
    return { ...current, loads: { ...Object.fromEntries(byName), [number]: 'loaded' } };
  };
}

/** @param version undefined: all */
export function unloaded(version: string | undefined, versions: readonly string[]): Change {
  return (current) => {
    const numbers = version === undefined ? versions : [knownVersion(version, current, versions)];
    const off = Object.fromEntries(numbers.map((number) => [number, 'unloaded' as const]));
    return { ...current, loads: version === undefined ? off : { ...current.loads, ...off } };
  };
}

export function aliasSet(alias: string, version: string, versions: readonly string[]): Change {
  return (current) => {
    if (!versions.includes(version)) {
      refuse(
        ['version'],
        `a version of ${current.model}: ${listed(versions)}`,
        `"${version}"`,
        'version_not_found',
      );
    }
    return { ...current, aliases: { ...current.aliases, [alias]: version } };
  };
}

export function aliasRemoved(alias: string): Change {
  return (current) => {
    if (!Object.hasOwn(current.aliases, alias)) throw noSuchAlias(alias, current);
    const { [alias]: _, ...aliases } = current.aliases;
    const user = userOf(alias, current);
    if (user) {
      refuse(
        ['path', 'alias'],
        'an alias that nothing uses',
        `"${alias}", which the ${user} names: take that away first`,
        'invalid_request',
      );
    }
    return { ...current, aliases };
  };
}

/** @param split null: none */
export function splitSet(split: TrafficSplit | null, versions: readonly string[]): Change {
  return (current) => {
    for (const ref of Object.keys(split?.weights ?? {})) checkRef(['weights', ref], ref, current, versions);
    return { ...current, split };
  };
}

/** @param shadow null: none */
export function shadowSet(shadow: ShadowRule | null, versions: readonly string[]): Change {
  return (current) => {
    if (shadow) checkRef(['version'], shadow.version, current, versions);
    return { ...current, shadow };
  };
}

export function scaled(instances: number | null): Change {
  return (current) => ({ ...current, instances });
}

/** Refused with the place in the body: the version or alias stands deep in it. */
function checkRef(
  path: PropertyKey[],
  ref: string,
  current: ModelDeployment,
  versions: readonly string[],
): void {
  const version = ref === DEFAULT_REF ? undefined : resolveRef(ref, current);
  if (version !== undefined && versions.includes(version)) return;
  const aliases = Object.keys(current.aliases).sort();
  const expected = `a version (${listed(versions)}) or alias (${listed(aliases)}) of ${current.model}`;
  refuse(path, expected, `"${ref}"`, 'invalid_request');
}

/** @throws RemudaError alias_not_found, version_not_found */
function knownVersion(ref: string, current: ModelDeployment, versions: readonly string[]): string {
  const version = resolveRef(ref, current);
  if (version === undefined) throw noSuchAlias(ref, current);
  if (!versions.includes(version)) throw noSuchVersion(current.model, version, versions);
  return version;
}

function newestOf(model: string, versions: readonly string[]): string {
  const newest = versions.at(-1);
  if (newest === undefined) throw noSuchVersion(model, 'yet', versions);
  return newest;
}

function userOf(alias: string, { split, shadow }: ModelDeployment): string | undefined {
  if (split && Object.hasOwn(split.weights, alias)) return 'split';
  return shadow?.version === alias ? 'shadow' : undefined;
}

/** null takes a key away, but where null is a value of it. */
function merged<Value>(
  before: Readonly<Record<string, Value>>,
  given: Readonly<Record<string, Value | null | undefined>> | undefined,
  nullable: readonly string[] = [],
): Record<string, Value> {
  const after = Object.entries({ ...before, ...given }).filter(
    ([key, value]) => value !== undefined && (value !== null || nullable.includes(key)),
  );
  return Object.fromEntries(after) as Record<string, Value>;
}

function listed(names: readonly string[]): string {
  return names.join(', ') || 'none';
}
