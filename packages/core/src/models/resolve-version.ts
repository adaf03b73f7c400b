/**
 * Which version a request goes to. Pure: what holds for every request of a model is worked out once for each view of
 * desired state and fleet, so that a request costs one or two look-ups.
 *
 *   a number → that version · an alias → where the fleet serves it · nothing → the split, else what the fleet serves as
 *   default, else the alias stable, else the newest version that a worker has ready, else the newest that was ever served
 *
 * A version that no worker may load is refused; a canary that is not ready gets no traffic. Held together with the
 * signature and the fallback by model-resolver.ts.
 */
import { createHash } from 'node:crypto';
import { DEFAULT_REF, type LoadMode, type ModelDeployment, type ServingState } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { resolveRef, servedRef } from './target-refs.js';
import { type Availability, availableAt, mayLoad } from './version-availability.js';

export interface VersionFacts {
  deployment: ModelDeployment;
  serving: ServingState | undefined;
  /** Of model.yaml. */
  loadMode: LoadMode;
  /** Known versions, lowest first. */
  versions: readonly string[];
  availability: Availability;
  /** The newest version that was ever served, or may be; null: there is none. */
  newestServed: string | null;
  /** What is wrong with its files; told where there is no version at all. */
  problems: readonly string[];
}

export interface VersionAsk {
  /** Number or alias; absent or "default": whatever is served. */
  ref?: string;
  stickyKey?: string;
  /** From 0 to below 1. */
  random(): number;
}

export interface VersionChoice {
  version: string;
  reason: string;
}

/** A request whose bucket (from 0 to below 100) is below `upTo`, and not below that of the entry before, goes there. */
interface Share extends VersionChoice {
  upTo: number;
}

export class VersionTable {
  readonly #facts: VersionFacts;
  readonly #shares: readonly Share[] | undefined;
  readonly #byDefault: VersionChoice | RemudaError;

  constructor(facts: VersionFacts) {
    this.#facts = facts;
    this.#byDefault = defaultChoice(facts);
    this.#shares = sharesOf(facts, this.#byDefault);
  }

  /** What requests without a version get, of a split the stable side. @throws RemudaError as choose */
  byDefault(): VersionChoice {
    const last = this.#shares?.at(-1);
    if (last) return last;
    if (this.#byDefault instanceof RemudaError) throw this.#byDefault;
    return this.#byDefault;
  }

  /** @throws RemudaError version_not_found, alias_not_found, model_not_loaded, signature_unavailable */
  choose({ ref, stickyKey, random }: VersionAsk): VersionChoice {
    if (ref !== undefined && ref !== DEFAULT_REF) return named(ref, this.#facts);
    if (!this.#shares) return this.byDefault();
    const sticks = stickyKey !== undefined;
    const bucket = sticks ? stickyBucket(this.#facts.deployment.model, stickyKey) : random() * 100;
    // The last share ends at 100, whatever rounding has made of the sum.
    const share = this.#shares.find(({ upTo }) => bucket < upTo) ?? (this.#shares.at(-1) as Share);
    return {
      version: share.version,
      reason: `${share.reason}, ${sticks ? 'by its sticky_key' : 'by chance'}`,
    };
  }
}

/**
 * From 0 to below 100, the same for ever for a model and a key. The shares stand in one order with the stable version
 * last: when a canary grows, keys move from the stable version to it and no key moves away from it.
 */
export function stickyBucket(model: string, key: string): number {
  const digest = createHash('sha1').update(model).update('\0').update(key).digest();
  return (digest.readUInt32BE(0) / 2 ** 32) * 100;
}

function named(ref: string, facts: VersionFacts): VersionChoice {
  const { deployment, serving, versions } = facts;
  const isNumber = /^\d/.test(ref);
  const version = servedRef(ref, deployment, serving);
  if (version === undefined) throw noSuchAlias(ref, deployment);
  if (!versions.includes(version))
    throw noSuchVersion(deployment.model, version, versions, isNumber ? undefined : ref);
  if (!mayLoad(version, deployment, facts.loadMode)) throw notLoaded(version, facts);
  const reason = isNumber
    ? `the request names version ${version}`
    : `alias ${ref} leads to version ${version}`;
  return { version, reason };
}

/** What requests without a version get where there is no split. */
function defaultChoice(facts: VersionFacts): VersionChoice | RemudaError {
  const { deployment, serving, versions, availability, newestServed, loadMode } = facts;
  const may = (version: string | null | undefined): version is string =>
    version != null && versions.includes(version) && mayLoad(version, deployment, loadMode);
  const served = serving?.refs[DEFAULT_REF];
  if (may(served?.version)) {
    return { version: served.version, reason: `version ${served.version} is served: ${served.reason}` };
  }
  const stable = deployment.aliases.stable;
  if (may(stable)) return { version: stable, reason: `alias stable leads to version ${stable}` };
  const ready = versions.findLast(
    (version) => may(version) && availableAt(availability, version).readyOn.size > 0,
  );
  if (ready !== undefined) {
    return { version: ready, reason: `version ${ready} is the newest that a live worker has ready` };
  }
  if (may(newestServed)) {
    return {
      version: newestServed,
      reason: `no live worker has a version ready; ${newestServed} is the newest`,
    };
  }
  const newest = versions.findLast(may);
  if (newest !== undefined)
    return { version: newest, reason: `version ${newest} is the newest that may be loaded` };
  return versions.length > 0 ? notLoaded(undefined, facts) : noVersion(facts);
}

/** undefined: there is no split, or nothing that its stable side leads to. */
function sharesOf(facts: VersionFacts, byDefault: VersionChoice | RemudaError): Share[] | undefined {
  const { split } = facts.deployment;
  if (!split) return undefined;
  const stable = stableChoice(split.stable, facts, byDefault);
  if (!stable) return undefined;
  const shares: Share[] = [];
  let upTo = 0;
  const others = Object.keys(split.weights).filter((ref) => ref !== split.stable);
  for (const ref of others.sort(byRef)) {
    const weight = split.weights[ref] as number;
    if (weight === 0) continue;
    upTo += weight;
    shares.push({ upTo, ...canaryChoice(ref, weight, stable, facts) });
  }
  shares.push({
    upTo: 100,
    version: stable.version,
    reason: `${stable.reason} with ${split.weights[split.stable]} %`,
  });
  return shares;
}

function stableChoice(
  ref: string,
  facts: VersionFacts,
  byDefault: VersionChoice | RemudaError,
): VersionChoice | undefined {
  const { deployment, serving, versions, loadMode } = facts;
  // A split moves to another stable version only when that is ready, like everything that is served by default.
  const served = serving?.refs[DEFAULT_REF]?.version;
  const wanted = served ?? servedRef(ref, deployment, serving);
  if (wanted !== undefined && versions.includes(wanted) && mayLoad(wanted, deployment, loadMode)) {
    return { version: wanted, reason: `${wanted} is the stable side of the split` };
  }
  return byDefault instanceof RemudaError ? undefined : byDefault;
}

function canaryChoice(
  ref: string,
  weight: number,
  stable: VersionChoice,
  facts: VersionFacts,
): VersionChoice {
  const { deployment, serving, availability } = facts;
  const version = servedRef(ref, deployment, serving) ?? resolveRef(ref, deployment);
  const trouble = version === undefined ? 'is not there' : troubleOf(version, facts);
  const share = `the split gives ${weight} % to ${nameOf(ref, version)}`;
  if (version === undefined || trouble !== undefined) {
    return { version: stable.version, reason: `${share}, which ${trouble}: it went to ${stable.version}` };
  }
  if (availableAt(availability, version).broken) {
    return {
      version: stable.version,
      reason: `${share}, whose runs keep failing: it went to ${stable.version}`,
    };
  }
  return { version, reason: share };
}

function troubleOf(
  version: string,
  { versions, deployment, loadMode, availability }: VersionFacts,
): string | undefined {
  if (!versions.includes(version)) return 'is not there';
  if (!mayLoad(version, deployment, loadMode)) return 'was unloaded';
  return availableAt(availability, version).readyOn.size > 0 ? undefined : 'no live worker has ready';
}

function nameOf(ref: string, version: string | undefined): string {
  return version === undefined || ref === version ? ref : `${ref} (${version})`;
}

/** Numbers as numbers, before aliases. */
function byRef(a: string, b: string): number {
  const [first, second] = [Number(a), Number(b)];
  if (Number.isNaN(first) || Number.isNaN(second)) return a < b ? -1 : 1;
  return first - second;
}

/** @param alias that led there */
export function noSuchVersion(
  model: string,
  version: string,
  versions: readonly string[],
  alias?: string,
): RemudaError {
  const has = `it has ${versions.join(', ') || 'none'}`;
  const message =
    alias === undefined
      ? `${model} has no version ${version}; ${has}`
      : `alias ${alias} of ${model} leads to version ${version}, which is not there; ${has}`;
  return new RemudaError('version_not_found', message, { versions });
}

export function noSuchAlias(alias: string, { model, aliases }: ModelDeployment): RemudaError {
  const known = Object.keys(aliases).sort();
  const message = `${model} has no alias "${alias}"; it has ${known.join(', ') || 'none'}`;
  return new RemudaError('alias_not_found', message, { aliases: known });
}

/** @param version undefined: none of the model */
function notLoaded(version: string | undefined, { deployment, loadMode }: VersionFacts): RemudaError {
  const { model, loads } = deployment;
  const explicit = (deployment.load_mode ?? loadMode) === 'explicit' && loads[version ?? ''] !== 'unloaded';
  const what =
    version === undefined
      ? `${model} has no version loaded: ${explicit ? 'its load mode is explicit' : 'each was unloaded by name'}`
      : `${model}@${version} ${explicit ? 'is not loaded: its load mode is explicit' : 'was unloaded by name'}`;
  const body = version === undefined ? '' : ` {"version": "${version}"}`;
  return new RemudaError(
    'model_not_loaded',
    `${what}; load it with POST /v1/admin/models/${model}:load${body}`,
    {
      model,
      version: version ?? null,
    },
  );
}

function noVersion({ deployment, problems }: VersionFacts): RemudaError {
  const why = problems.join('; ') || 'no worker has told of one yet';
  return new RemudaError(
    'signature_unavailable',
    `${deployment.model} has no version that can be served: ${why}`,
  );
}
