/**
 * Which models there are and what they take: the local repository together with what workers have published. A
 * request is answered from a Map that is brought up to date in the background; only a model or version that is not in
 * it costs a look at the disk, and only one that nobody has published costs a child process that reads it.
 *
 * Where a published signature and the local file disagree, the workers are right: they run the requests.
 */
import type { HarnessConfig, ModelSignature } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import type { FleetView } from '../fleet/fleet-view.js';
import { Repeat } from '../fleet/repeat.js';
import type { ModelSource } from '../harness/harness.js';
import { inspectModel } from '../inference/inspect-model.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import { type RepositoryModel, scanRepository, toModelSource } from '../repository/manifests.js';
import { nearNames } from '../repository/near-names.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { fieldOf, type Published, PublishedSignatures } from './published-signatures.js';

export interface CatalogueOptions {
  redis: Redis;
  keys: Keys;
  /** Folder of the model repository; null: this process sees none, and knows what workers publish. */
  repository: string | null;
  fleet: Pick<FleetView, 'loadedBy'>;
  onError(error: Error): void;
  clock?: Clock;
  everyMs?: number;
  inspect?(source: ModelSource): Promise<ModelSignature>;
}

/** One model as the catalogue sees it. */
export interface CatalogueEntry {
  name: string;
  local: RepositoryModel | null;
  /** By version. */
  published: ReadonlyMap<string, Published>;
  /** Lowest first. */
  versions: string[];
  defaultVersion: string | null;
}

const REFRESH_EVERY_MS = 3_000;
/** A name that is not there must not cost a look at the disk each time it is asked for. */
const MISS_RESCAN_MS = 1_000;
/** A file that could not be read is not tried again for this long, unless it has changed. */
const FAILURE_KEPT_MS = 30_000;

export class Catalogue implements Service {
  readonly name = 'catalogue';
  readonly #options: CatalogueOptions;
  readonly #clock: Clock;
  readonly #repeat: Repeat;
  readonly #published: PublishedSignatures;
  readonly #inspections = new Map<string, Promise<ModelSignature>>();
  readonly #failures = new Map<string, { error: RemudaError; at: number }>();
  #entries = new Map<string, CatalogueEntry>();
  /** By "model/version" and, for the default version, by "model/": what a submit looks into. */
  #signatures = new Map<string, ModelSignature>();
  #refreshing: Promise<void> | undefined;
  #refreshedAt = Number.NEGATIVE_INFINITY;

  constructor(options: CatalogueOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#published = new PublishedSignatures(options.redis, options.keys);
    const { everyMs = REFRESH_EVERY_MS, onError } = options;
    this.#repeat = new Repeat({ everyMs, clock: this.#clock, onError, turn: () => this.refresh() });
  }

  start(): Promise<void> {
    return this.#repeat.start();
  }

  stop(): Promise<void> {
    return this.#repeat.stop();
  }

  /** The signature, where it is at hand. */
  known(model: string, version: string | undefined): ModelSignature | undefined {
    return this.#signatures.get(fieldOf(model, version ?? ''));
  }

  /** @throws RemudaError model_not_found, version_not_found, signature_unavailable */
  async signatureOf(model: string, version?: string): Promise<ModelSignature> {
    const known = this.known(model, version);
    if (known) return known;
    const entry = await this.entry(model, version);
    const wanted = version ?? entry.defaultVersion;
    if (wanted === null) throw noVersion(entry);
    if (!entry.versions.includes(wanted)) throw noSuchVersion(model, wanted, entry.versions);
    return this.known(model, wanted) ?? this.#inspectShared(model, wanted);
  }

  entries(): CatalogueEntry[] {
    return [...this.#entries.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Looks again before it says no. @throws RemudaError model_not_found */
  async entry(model: string, version?: string): Promise<CatalogueEntry> {
    const before = this.#entries.get(model);
    if (before && (version === undefined || before.versions.includes(version))) return before;
    await this.#refreshOnMiss();
    const entry = this.#entries.get(model);
    if (entry) return entry;
    const suggestions = nearNames(model, this.#entries.keys());
    const hint = suggestions.length > 0 ? `; did you mean ${suggestions.join(' or ')}?` : '';
    throw new RemudaError('model_not_found', `there is no model "${model}"${hint}`, { suggestions });
  }

  /** Why a version cannot be served, or not as its file says: from the repository, from here, from the workers. */
  problemsOf({ name, local, published }: CatalogueEntry): string[] {
    const problems = (local?.problems ?? []).map((problem) => problem.message);
    for (const { version, digest } of local?.versions ?? []) {
      const other = published.get(version)?.signature.digest;
      if (other !== undefined && other !== digest && this.#isLoaded(name, version, other)) {
        problems.push(`${name}@${version}: the workers run another file or configuration than lies here`);
      }
      const failure = this.#failures.get(failureKey(name, version, digest));
      if (failure) problems.push(failure.error.message);
    }
    for (const { worker, loaded } of this.#options.fleet.loadedBy(name)) {
      if (loaded.state !== 'failed') continue;
      problems.push(
        `${name}@${loaded.version} on worker ${worker.worker_id}: ${loaded.reason ?? 'failed to load'}`,
      );
    }
    return problems;
  }

  configOf({ local, published, defaultVersion }: CatalogueEntry): HarnessConfig | null {
    return (
      (defaultVersion === null ? undefined : published.get(defaultVersion)?.config) ?? local?.config ?? null
    );
  }

  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #refreshOnMiss(): Promise<void> {
    if (this.#clock.now() - this.#refreshedAt < MISS_RESCAN_MS) return;
    // Without Redis or disk the answer is given from what was known.
    await this.refresh().catch(this.#options.onError);
  }

  /** Either source may fail without hiding what the other says. */
  async #refresh(): Promise<void> {
    const { redis, repository } = this.#options;
    const [listing, published] = await Promise.allSettled([
      repository === null ? undefined : scanRepository(repository),
      redis.status === 'ready' ? this.#published.refresh() : undefined,
    ]);
    const local = listing.status === 'fulfilled' ? listing.value?.models : this.#localBefore();
    this.#merge(local ?? []);
    this.#refreshedAt = this.#clock.now();
    for (const settled of [listing, published]) if (settled.status === 'rejected') throw settled.reason;
  }

  #localBefore(): RepositoryModel[] {
    return [...this.#entries.values()].flatMap(({ local }) => local ?? []);
  }

  #merge(local: readonly RepositoryModel[]): void {
    const byName = new Map<string, { local: RepositoryModel | null; published: Map<string, Published> }>();
    for (const model of local) byName.set(model.name, { local: model, published: new Map() });
    for (const published of this.#published.byField.values()) {
      const { model, version } = published.signature;
      const found = byName.get(model) ?? { local: null, published: new Map<string, Published>() };
      found.published.set(version, published);
      byName.set(model, found);
    }
    this.#entries = new Map([...byName].map(([name, parts]) => [name, entryOf(name, parts)]));
    this.#signatures = this.#usable();
  }

  #usable(): Map<string, ModelSignature> {
    const signatures = new Map<string, ModelSignature>();
    for (const entry of this.#entries.values()) {
      for (const version of entry.versions) {
        const signature = this.#usableOf(entry, version);
        if (!signature) continue;
        signatures.set(fieldOf(entry.name, version), signature);
        if (version === entry.defaultVersion) signatures.set(fieldOf(entry.name, ''), signature);
      }
    }
    return signatures;
  }

  /** What was published for a file that has changed since holds only while a worker still runs that file. */
  #usableOf({ name, local, published }: CatalogueEntry, version: string): ModelSignature | undefined {
    const signature = published.get(version)?.signature;
    const file = local?.versions.find((candidate) => candidate.version === version);
    if (!signature || !file || file.digest === signature.digest) return signature;
    return this.#isLoaded(name, version, signature.digest) ? signature : undefined;
  }

  #isLoaded(model: string, version: string, digest: string): boolean {
    return this.#options.fleet
      .loadedBy(model)
      .some(({ loaded }) => loaded.version === version && loaded.digest === digest);
  }

  /** One child for all who ask at the same time. */
  #inspectShared(model: string, version: string): Promise<ModelSignature> {
    const key = fieldOf(model, version);
    let inspection = this.#inspections.get(key);
    if (!inspection) {
      inspection = this.#inspect(model, version).finally(() => this.#inspections.delete(key));
      this.#inspections.set(key, inspection);
    }
    return inspection;
  }

  async #inspect(model: string, version: string): Promise<ModelSignature> {
    // A worker may have published it, or the file may have changed, since the last refresh.
    await this.refresh().catch(this.#options.onError);
    const known = this.known(model, version);
    if (known) return known;
    const { local } = await this.entry(model);
    if (!local) {
      throw unavailable(`${model}@${version}: no worker has published it and it is not in this repository`);
    }
    const source = sourceOf(local, version);
    const key = failureKey(model, version, source.digest);
    const failure = this.#failures.get(key);
    if (failure && this.#clock.now() - failure.at < FAILURE_KEPT_MS) throw failure.error;
    try {
      const signature = await (this.#options.inspect ?? inspectModel)(source);
      this.#failures.delete(key);
      await this.#keep(signature, source.config);
      return signature;
    } catch (cause) {
      const error = unavailable(cause instanceof Error ? cause.message : String(cause), cause);
      this.#failures.set(key, { error, at: this.#clock.now() });
      throw error;
    }
  }

  async #keep(signature: ModelSignature, config: HarnessConfig): Promise<void> {
    const { model, version } = signature;
    this.#signatures.set(fieldOf(model, version), signature);
    if (this.#entries.get(model)?.defaultVersion === version) {
      this.#signatures.set(fieldOf(model, ''), signature);
    }
    // For the others; without it they read the file themselves.
    if (this.#options.redis.status !== 'ready') return;
    await this.#published.publishUnlessNewer(signature, config).catch(this.#options.onError);
  }
}

function entryOf(
  name: string,
  { local, published }: { local: RepositoryModel | null; published: Map<string, Published> },
): CatalogueEntry {
  // A version that was taken out of the repository is not offered any more, though its signature is still stored.
  const offered = local ? local.versions.map(({ version }) => version) : [...published.keys()];
  const versions = offered.sort((a, b) => Number(a) - Number(b));
  // A new version takes traffic once a worker has it; before that the highest one that had been served does.
  const served = versions.findLast((version) => published.get(version)?.by === 'worker');
  return { name, local, published, versions, defaultVersion: served ?? local?.defaultVersion ?? null };
}

/** A file that is missing or faulty is trouble of this server, not of the request. */
function sourceOf(local: RepositoryModel, version: string): ModelSource {
  try {
    return toModelSource(local, version, 'cpu');
  } catch (error) {
    throw unavailable(error instanceof Error ? error.message : String(error), error);
  }
}

function failureKey(model: string, version: string, digest: string): string {
  return `${fieldOf(model, version)}/${digest}`;
}

function unavailable(message: string, cause?: unknown): RemudaError {
  return new RemudaError('signature_unavailable', message, {}, { cause });
}

function noVersion(entry: CatalogueEntry): RemudaError {
  const reasons = (entry.local?.problems ?? []).map((problem) => problem.message);
  return unavailable(
    `${entry.name} has no version that can be served: ${reasons.join('; ') || 'none is there'}`,
  );
}

function noSuchVersion(name: string, version: string, versions: readonly string[]): RemudaError {
  const message = `${name} has no version ${version}; it has ${versions.join(', ') || 'none'}`;
  return new RemudaError('version_not_found', message, { versions });
}
