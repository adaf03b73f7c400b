/**
 * Where a request goes: model, version and signature, with the reason. Asks nobody: what holds for all requests of a
 * model is put together once for each view of catalogue, desired state and fleet, and kept until one of them is
 * another. Only a model, version or signature that is not known yet costs a look at the disk (catalogue.ts).
 *
 * A fallback is looked at once and never followed further: a model that falls back to one that falls back ends there.
 */
import type {
  HarnessConfig,
  ModelDeployment,
  ModelSignature,
  ResultCacheRule,
  ServingState,
} from '@remuda/schemas';
import type { FleetView } from '../fleet/fleet-view.js';
import type { Catalogue } from '../requests/catalogue.js';
import type { CatalogueEntry } from '../requests/catalogue-entry.js';
import { inputDifferences } from './compatible-signatures.js';
import type { DeploymentView } from './deployment-view.js';
import { effectiveConfig } from './effective-config.js';
import { toldLoadMode } from './fleet-models.js';
import { type VersionAsk, type VersionChoice, VersionTable } from './resolve-version.js';
import { type Availability, availabilityOf, availableAt } from './version-availability.js';

/** What a request asks for. */
export interface ModelAsk {
  model: string;
  /** Number or alias. */
  version?: string;
  stickyKey?: string;
}

/** Where it goes. */
export interface Target {
  /** Of the model and version that run it. */
  signature: ModelSignature;
  versionReason: string;
  /** The model that was asked for, where another answers for it. */
  fallbackFor?: string;
  /** Of the model that runs it; undefined: it has no result cache. */
  resultCache?: ResultCacheRule | undefined;
  notices: readonly string[];
}

export interface ModelResolverDeps {
  catalogue: Pick<Catalogue, 'at' | 'entry' | 'configOf' | 'known' | 'signatureOf'>;
  deployments: Pick<DeploymentView, 'of' | 'deployments' | 'serving'>;
  fleet: Pick<FleetView, 'loadedBy' | 'workers'>;
  /** From 0 to below 1; for splits. */
  random?: () => number;
}

/** All that is known of a model, for as long as the three views are these. */
interface KnownModel {
  entry: CatalogueEntry;
  deployment: ModelDeployment | undefined;
  serving: ServingState | undefined;
  workers: FleetView['workers'];
  config: HarnessConfig | null;
  availability: Availability;
  table: VersionTable;
  resultCache: ResultCacheRule | undefined;
}

const NO_NOTICES: readonly string[] = [];

export class ModelResolver {
  readonly #deps: ModelResolverDeps;
  readonly #random: () => number;
  readonly #known = new Map<string, KnownModel>();

  constructor(deps: ModelResolverDeps) {
    this.#deps = deps;
    this.#random = deps.random ?? Math.random;
  }

  /** @throws RemudaError model_not_found, version_not_found, alias_not_found, model_not_loaded, signature_unavailable */
  async resolve(ask: ModelAsk): Promise<Target> {
    const known = this.#at(ask.model) ?? (await this.#look(ask.model));
    const fallback = this.#fallback(ask, known);
    if (fallback) return fallback;
    const choice = await this.#choose(ask, known);
    const signature =
      this.#deps.catalogue.known(ask.model, choice.version) ??
      (await this.#deps.catalogue.signatureOf(ask.model, choice.version));
    const { resultCache } = known;
    return { signature, versionReason: choice.reason, resultCache, notices: NO_NOTICES };
  }

  /** What a request without a version gets now; null: none could be served. */
  defaultVersion(model: string): string | null {
    try {
      return this.#at(model)?.table.byDefault().version ?? null;
    } catch {
      return null;
    }
  }

  /** Whether a live worker has the version ready on that class of device. */
  isReady(model: string, version: string, deviceClass: string): boolean {
    const known = this.#at(model);
    return known !== undefined && availableAt(known.availability, version).readyOn.has(deviceClass);
  }

  /** The model that answers while this one cannot; null: there is none, or it could not. */
  fallbackOf(model: string): string | null {
    const name = this.#at(model)?.config?.fallback_model;
    return name === undefined || this.#fallbackTrouble(model, name) !== undefined ? null : name;
  }

  /** Why `fallback_model` of a model would not answer; undefined: it would, or there is none. */
  fallbackProblem(model: string): string | undefined {
    const known = this.#at(model);
    const name = known?.config?.fallback_model;
    if (!known || name === undefined) return undefined;
    const trouble = this.#fallbackTrouble(model, name);
    return trouble === undefined
      ? undefined
      : `${model}: fallback_model ${name} cannot answer for it: ${trouble}`;
  }

  async #look(model: string): Promise<KnownModel> {
    await this.#deps.catalogue.entry(model);
    // It is there: the entry would not have been found otherwise.
    return this.#at(model) as KnownModel;
  }

  /** A number that is not known is looked for once more before it is refused. */
  async #choose({ model, version: ref, stickyKey }: ModelAsk, known: KnownModel): Promise<VersionChoice> {
    const ask: VersionAsk = { ref, stickyKey, random: this.#random };
    if (ref === undefined || !/^\d/.test(ref) || known.entry.versions.includes(ref))
      return known.table.choose(ask);
    await this.#deps.catalogue.entry(model, ref);
    return (this.#at(model) ?? known).table.choose(ask);
  }

  #at(model: string): KnownModel | undefined {
    const { catalogue, deployments, fleet } = this.#deps;
    const entry = catalogue.at(model);
    if (!entry) return undefined;
    const before = this.#known.get(model);
    const deployment = deployments.deployments.get(model);
    const serving = deployments.serving(model);
    const same =
      before?.entry === entry &&
      before.deployment === deployment &&
      before.serving === serving &&
      before.workers === fleet.workers;
    if (before && same) return before;
    const known = this.#put(entry, deployment, serving);
    this.#known.set(model, known);
    return known;
  }

  #put(
    entry: CatalogueEntry,
    deployment: ModelDeployment | undefined,
    serving: ServingState | undefined,
  ): KnownModel {
    const { catalogue, deployments, fleet } = this.#deps;
    const config = catalogue.configOf(entry);
    const copies = fleet.loadedBy(entry.name);
    const availability = availabilityOf(copies);
    const table = new VersionTable({
      deployment: deployment ?? deployments.of(entry.name),
      serving,
      loadMode: config?.load_mode ?? toldLoadMode(copies),
      versions: entry.versions,
      availability,
      newestServed: entry.defaultVersion,
      problems: (entry.local?.problems ?? []).map(({ message }) => message),
    });
    const resultCache = config
      ? effectiveConfig(config, deployment ?? deployments.of(entry.name)).result_cache
      : (deployment?.settings.result_cache ?? undefined);
    return { entry, deployment, serving, workers: fleet.workers, config, availability, table, resultCache };
  }

  /** The fallback, where the primary cannot answer and the fallback can. Who names a version by number wants that one. */
  #fallback(
    { model, version: ref, stickyKey }: ModelAsk,
    { config, table, availability }: KnownModel,
  ): Target | undefined {
    const name = config?.fallback_model;
    if (name === undefined || (ref !== undefined && /^\d/.test(ref))) return undefined;
    const trouble = troubleOf(model, { ref, stickyKey, random: this.#random }, table, availability);
    if (trouble === undefined || this.#fallbackTrouble(model, name) !== undefined) return undefined;
    const other = this.#at(name) as KnownModel;
    const choice = other.table.byDefault();
    return {
      signature: this.#deps.catalogue.known(name, choice.version) as ModelSignature,
      versionReason: choice.reason,
      fallbackFor: model,
      resultCache: other.resultCache,
      notices: [`${name} answers in place of ${model}: ${trouble}`],
    };
  }

  /** Why a model cannot answer for another now; undefined: it can. */
  #fallbackTrouble(model: string, name: string): string | undefined {
    if (name === model) return 'it is the model itself';
    const other = this.#at(name);
    if (!other) return 'there is no such model';
    const version = this.defaultVersion(name);
    if (version === null) return 'it has no version that is served';
    const { readyOn, broken } = availableAt(other.availability, version);
    if (readyOn.size === 0) return `its version ${version} is not ready on a live worker`;
    if (broken) return `the runs of its version ${version} keep failing`;
    const signature = this.#deps.catalogue.known(name, version);
    if (!signature) return `the signature of its version ${version} is not known`;
    return this.#misfit(model, signature);
  }

  /** Where the signature of the primary is not known, the inputs are held against the fallback's alone. */
  #misfit(model: string, fallback: ModelSignature): string | undefined {
    const version = this.defaultVersion(model) ?? this.#at(model)?.entry.versions.at(-1);
    const primary = version === undefined ? undefined : this.#deps.catalogue.known(model, version);
    if (!primary) return undefined;
    const differences = inputDifferences(primary, fallback);
    return differences.length === 0 ? undefined : `its inputs differ: ${differences.join('; ')}`;
  }
}

/** Why a model cannot answer a request; undefined: it can. An alias that is not there is the caller's own fault. */
function troubleOf(
  model: string,
  ask: VersionAsk,
  table: VersionTable,
  availability: Availability,
): string | undefined {
  let version: string;
  try {
    ({ version } = ask.ref === undefined ? table.byDefault() : table.choose(ask));
  } catch (error) {
    const code = (error as { code?: string }).code;
    return code === 'alias_not_found' || code === 'version_not_found' ? undefined : (error as Error).message;
  }
  const { readyOn, coming, broken } = availableAt(availability, version);
  if (broken) return `the runs of ${model}@${version} keep failing wherever it is loaded`;
  if (readyOn.size > 0 || coming) return undefined;
  return `no live worker has ${model}@${version} ready or could load it`;
}
