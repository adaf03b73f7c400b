/**
 * Models whose desired state names a source: fetched in the background into the cache, looked at again now and then for
 * new versions. What was fetched before serves on while a fetch is under way or fails.
 */
import { RemudaError } from '@remuda/core/errors';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Logger } from '@remuda/core/observability/logger';
import { FileHashes } from '@remuda/core/repository/file-hashes';
import type { RepositoryModel } from '@remuda/core/repository/manifests';
import { ModelWatch } from '@remuda/core/repository/repository-watch';
import { SourceCache } from '@remuda/core/repository/sources/source-cache';
import { ModelSourceSpec } from '@remuda/schemas';

export interface FetchedModelsOptions {
  cacheFolder: string;
  /** Value of a header "env:NAME". */
  secret(name: string): string | undefined;
  clock: Clock;
  logger: Logger;
  /** A model has come, or could not be fetched. */
  onFetched(): void;
}

/** Between two looks at a source; after a failure the pause grows from the first to this. */
const LOOK_AGAIN_MS = 60_000;
const FIRST_RETRY_MS = 2_000;

interface Fetched {
  spec: string;
  /** Of what was fetched last. */
  watch: ModelWatch | undefined;
  folder: string;
  fetching: boolean;
  /** Unix milliseconds of the next fetch. */
  dueAt: number;
  failures: number;
  problem: string | null;
}

export class FetchedModels {
  readonly #options: FetchedModelsOptions;
  readonly #hashes = new FileHashes();
  readonly #cache: SourceCache;
  readonly #models = new Map<string, Fetched>();
  readonly #stop = new AbortController();

  constructor(options: FetchedModelsOptions) {
    this.#options = options;
    const { cacheFolder: folder, secret: secrets, clock } = options;
    this.#cache = new SourceCache({ folder, secrets, clock, hashes: this.#hashes });
  }

  /** What is here of a model; begins to fetch it where that is due. Its problems say what is missing. */
  async look(model: string, source: Record<string, unknown>): Promise<RepositoryModel> {
    const fetched = this.#of(model, source);
    if (!fetched.fetching && this.#options.clock.now() >= fetched.dueAt)
      void this.#fetch(model, source, fetched);
    if (!fetched.watch) return notHere(model, fetched.problem);
    return fetched.watch.look();
  }

  /** Ends what is under way; what has come is kept for the next start. */
  stop(): void {
    this.#stop.abort(new RemudaError('shutting_down', 'the worker is stopping'));
  }

  #of(model: string, source: Record<string, unknown>): Fetched {
    const spec = JSON.stringify(source);
    const known = this.#models.get(model);
    if (known?.spec === spec) return known;
    const fetched: Fetched = {
      spec,
      watch: known?.watch,
      folder: known?.folder ?? '',
      fetching: false,
      dueAt: 0,
      failures: 0,
      problem: null,
    };
    this.#models.set(model, fetched);
    return fetched;
  }

  async #fetch(model: string, source: Record<string, unknown>, fetched: Fetched): Promise<void> {
    const { clock, logger, onFetched } = this.#options;
    fetched.fetching = true;
    try {
      const spec = ModelSourceSpec.parse(source);
      const { folder } = await this.#cache.sync(model, spec, { signal: this.#stop.signal });
      if (fetched.folder !== folder) fetched.watch = new ModelWatch(folder, model, this.#hashes);
      fetched.folder = folder;
      fetched.problem = null;
      fetched.failures = 0;
      fetched.dueAt = clock.now() + LOOK_AGAIN_MS;
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      fetched.problem = error instanceof Error ? error.message : String(error);
      fetched.dueAt = clock.now() + Math.min(LOOK_AGAIN_MS, FIRST_RETRY_MS * 2 ** fetched.failures++);
      logger.error({ model, reason: fetched.problem }, 'model could not be fetched');
    } finally {
      fetched.fetching = false;
    }
    onFetched();
  }
}

/** @param problem null: it is on its way */
function notHere(name: string, problem: string | null): RepositoryModel {
  const message = `${name}: ${problem ?? 'its files are being fetched'}`;
  const kind = problem === null ? 'fetching' : 'unreadable';
  const problems = [{ kind, version: null, file: '', line: null, message } as const];
  return { name, folder: '', config: null, versions: [], defaultVersion: null, problems: [...problems] };
}
