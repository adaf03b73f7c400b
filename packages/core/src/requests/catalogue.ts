/**
 * Which models there are and what they take: the local repository together with what workers have published. A
 * request is answered from a Map that is brought up to date in the background; only a model or version that is not in
 * it costs a look at the disk, and only one that nobody has published costs a child process that reads it.
 *
 * Where a published signature and the local file disagree, the workers are right: they run the requests.
 */
import type { HarnessConfig, ModelDeployment, ModelSignature } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import type { FleetView } from '../fleet/fleet-view.js';
import { Repeat } from '../fleet/repeat.js';
import type { ModelSource } from '../harness/harness.js';
import { inspectModel } from '../inference/inspect-model.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import { takenOutMessage } from '../models/taken-out.js';
import { type RepositoryModel, scanRepository } from '../repository/manifests.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import {
  type CatalogueEntry,
  entryOf,
  failureKey,
  noSuchModel,
  sourceOf,
  unavailable,
} from './catalogue-entry.js';
import { fieldOf, type Published, PublishedSignatures } from './published-signatures.js';
import { wishForSignature } from './signature-wishes.js';

export interface CatalogueOptions {
  redis: Redis;
  keys: Keys;
  /** Folder of the model repository; null: this process sees none, and knows what workers publish. */
  repository: string | null;
  fleet: Pick<FleetView, 'loadedBy' | 'models'>;
  /** Desired state by model: what is registered without lying here, and what was taken out. */
  deployments?: () => ReadonlyMap<string, ModelDeployment>;
  onError(error: Error): void;
  clock?: Clock;
  everyMs?: number;
  inspect?(source: ModelSource): Promise<ModelSignature>;
  /** How long a worker may take to read a signature that is asked of it, in milliseconds. Default 10,000. */
  wishMs?: number;
}

const REFRESH_EVERY_MS = 3_000;
/** A name that is not there must not cost a look at the disk each time it is asked for. */
const MISS_RESCAN_MS = 1_000;
/** A file that could not be read is not tried again for this long, unless it has changed. */
const FAILURE_KEPT_MS = 30_000;
const WISH_MS = 10_000;
const WISH_LOOK_MS = 150;

export class Catalogue implements Service {
  readonly name = 'catalogue';
  readonly #options: CatalogueOptions;
  readonly #clock: Clock;
  readonly #repeat: Repeat;
  readonly #published: PublishedSignatures;
  readonly #inspections = new Map<string, Promise<ModelSignature>>();
  readonly #failures = new Map<string, { error: RemudaError; at: number }>();
  #entries = new Map<string, CatalogueEntry>();
  /** By "model/version": what a submit looks into. */
  #signatures = new Map<string, ModelSignature>();
  readonly #stop = new AbortController();
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
    this.#stop.abort();
    return this.#repeat.stop();
  }

  /** The signature, where it is at hand. */
  known(model: string, version: string): ModelSignature | undefined {
    return this.#signatures.get(fieldOf(model, version));
  }

  /** Of a version that the entry lists. @throws RemudaError model_not_found, signature_unavailable */
  async signatureOf(model: string, version: string): Promise<ModelSignature> {
    return this.known(model, version) ?? this.#inspectShared(model, version);
  }

  /** All that take requests, by name. */
  entries(): CatalogueEntry[] {
    return this.allEntries().filter(({ name }) => !this.#isTakenOut(name));
  }

  /** Those that were taken out too. */
  allEntries(): CatalogueEntry[] {
    return [...this.#entries.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** What is known without looking again; undefined: no such model, or it was taken out. */
  at(model: string): CatalogueEntry | undefined {
    return this.#isTakenOut(model) ? undefined : this.#entries.get(model);
  }

  /** Looks again before it says no. @throws RemudaError model_not_found */
  async entry(model: string, version?: string): Promise<CatalogueEntry> {
    if (this.#isTakenOut(model)) {
      throw new RemudaError('model_not_found', takenOutMessage(model));
    }
    return this.anyEntry(model, version);
  }

  /** The same, also of a model that was taken out. */
  async anyEntry(model: string, version?: string): Promise<CatalogueEntry> {
    const before = this.#entries.get(model);
    if (before && (version === undefined || before.versions.includes(version))) return before;
    await this.#refreshOnMiss();
    const entry = this.#entries.get(model);
    if (entry) return entry;
    throw noSuchModel(model, this.entries());
  }

  #isTakenOut(model: string): boolean {
    return this.#options.deployments?.().get(model)?.registered === false;
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
        `${loaded.version === '' ? name : `${name}@${loaded.version}`} on worker ${worker.worker_id}: ${loaded.reason ?? 'failed to load'}`,
      );
    }
    return problems;
  }

  configOf({ local, published, defaultVersion }: CatalogueEntry): HarnessConfig | null {
    return (
      (defaultVersion === null ? undefined : published.get(defaultVersion)?.config) ?? local?.config ?? null
    );
  }

  /** Takes in a changed desired state at once. */
  update(): void {
    this.#merge(this.#localBefore());
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
    const { fleet, deployments } = this.#options;
    // Nothing was loaded of these yet.
    for (const model of [...(deployments?.().keys() ?? []), ...fleet.models]) {
      if (!byName.has(model)) byName.set(model, { local: null, published: new Map() });
    }
    this.#entries = new Map(
      [...byName].map(([name, parts]) => [
        name,
        entryOf(name, { ...parts, named: () => fleet.loadedBy(name).map(({ loaded }) => loaded.version) }),
      ]),
    );
    this.#signatures = this.#usable();
  }

  #usable(): Map<string, ModelSignature> {
    const signatures = new Map<string, ModelSignature>();
    for (const entry of this.#entries.values()) {
      for (const version of entry.versions) {
        const signature = this.#usableOf(entry, version);
        if (!signature) continue;
        signatures.set(fieldOf(entry.name, version), signature);
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
    const { local } = await this.anyEntry(model);
    if (!local) return this.#askWorkers(model, version);
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

  /** The files lie where only workers see them: one of those reads what nobody has loaded yet. */
  async #askWorkers(model: string, version: string): Promise<ModelSignature> {
    const { redis, keys, fleet, wishMs = WISH_MS } = this.#options;
    const { signal } = this.#stop;
    const isThere = fleet.loadedBy(model).some(({ loaded }) => loaded.version === version);
    if (!isThere) {
      throw unavailable(`${model}@${version}: no worker has published it and it is not in this repository`);
    }
    await wishForSignature(redis, keys, model, version);
    for (const until = this.#clock.now() + wishMs; this.#clock.now() < until && !signal.aborted; ) {
      await new Promise<void>((resolve) => {
        this.#clock.after(WISH_LOOK_MS, resolve);
      });
      await this.refresh();
      const signature = this.known(model, version);
      if (signature) return signature;
    }
    throw unavailable(
      `${model}@${version}: the workers that have its files have not read it in time; try again`,
    );
  }

  async #keep(signature: ModelSignature, config: HarnessConfig): Promise<void> {
    const { model, version } = signature;
    this.#signatures.set(fieldOf(model, version), signature);
    // For the others; without it they read the file themselves.
    if (this.#options.redis.status !== 'ready') return;
    await this.#published.publishUnlessNewer(signature, config).catch(this.#options.onError);
  }
}
