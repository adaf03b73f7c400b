/**
 * Brings models from their sources into one folder that is laid out as a model repository. A version appears whole
 * and checked, and never changes afterwards; a sync that fails leaves what was there as it was.
 */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type LocalSource, ModelName, ModelSourceSpec } from '@remuda/schemas';
import { ModelLoadError, RemudaError } from '../../errors.js';
import { type Clock, systemClock } from '../../lifecycle/clock.js';
import { FileHashes } from '../file-hashes.js';
import { CONFIG_FILE, scanModelFolder } from '../manifests.js';
import { checkConfig } from './config-check.js';
import { FetchRecord, type RecordedFile } from './fetch-record.js';
import { takeLease } from './folder-lease.js';
import type { Fetch, Secrets } from './http-requests.js';
import { listHttpSource } from './http-source.js';
import { Patience, type PatienceOptions } from './patience.js';
import { listS3Source } from './s3-source.js';
import { isFixed, type SourceFile, versionOf, versionsOf } from './source-files.js';
import { StagedFiles, type SyncProgress } from './staged-files.js';
import { staleVersions, type WantedFile } from './version-check.js';

export type { SyncProgress } from './staged-files.js';

export interface SourceCacheOptions extends Omit<PatienceOptions, 'clock'> {
  /** The cache; made when it is not there. It can be read as a model repository at any time. */
  folder: string;
  /** Values of headers "env:NAME"; default: there are none. */
  secrets?: Secrets;
  /** Default: the system's. */
  clock?: Clock;
  /** Default: the global one. */
  fetch?: Fetch;
  /** Files of a model fetched at once; default 4. Raise it for many small files. */
  concurrency?: number;
  onProgress?(progress: SyncProgress): void;
  /** Default: its own. Pass the one that scans the repository, and no file is read twice. */
  hashes?: FileHashes;
}

export interface SyncResult {
  /** Absolute path of the model's folder. */
  folder: string;
  /** Versions that the source has, lowest first. */
  versions: string[];
  /** Versions that are new or mended; other files (model.yaml, 1/golden/a.json) that were replaced or removed. */
  changed: string[];
}

export class SourceCache {
  readonly #folder: string;
  readonly #secrets: Secrets;
  readonly #clock: Clock;
  readonly #fetch: Fetch;
  readonly #concurrency: number;
  readonly #onProgress: (progress: SyncProgress) => void;
  readonly #hashes: FileHashes;
  readonly #patience: Patience;

  constructor(options: SourceCacheOptions) {
    this.#folder = resolve(options.folder);
    this.#secrets = options.secrets ?? (() => undefined);
    this.#clock = options.clock ?? systemClock;
    this.#fetch = options.fetch ?? globalThis.fetch;
    this.#concurrency = options.concurrency ?? 4;
    this.#onProgress = options.onProgress ?? (() => undefined);
    this.#hashes = options.hashes ?? new FileHashes();
    this.#patience = new Patience({ ...options, clock: this.#clock });
  }

  /**
   * Makes the cache hold what the source has. Other processes that fetch the same model are waited for. A version
   * that has left the source stays in the cache.
   * @throws RemudaError source_unavailable, source_invalid, invalid_request; model_load_failed for a local folder that
   *   is no model; the signal's reason
   */
  async sync(
    model: string,
    source: ModelSourceSpec,
    { signal = new AbortController().signal }: { signal?: AbortSignal } = {},
  ): Promise<SyncResult> {
    const spec = checkedSpec(model, source);
    if (spec.type === 'local') return checkLocal(model, spec, this.#hashes);
    const work = join(this.#folder, '.sources', model);
    await mkdir(work, { recursive: true });
    const lease = await takeLease(join(work, 'lease'), this.#clock, signal);
    try {
      return await this.#fetchModel(model, spec, work, signal);
    } finally {
      await lease.release();
    }
  }

  async #fetchModel(
    model: string,
    spec: Exclude<ModelSourceSpec, LocalSource>,
    work: string,
    signal: AbortSignal,
  ): Promise<SyncResult> {
    const record = await FetchRecord.read(join(work, 'record.json'));
    const { files, close } = await this.#list(spec, model, record, signal);
    try {
      const staged = new StagedFiles({
        workFolder: work,
        patience: this.#patience,
        concurrency: this.#concurrency,
        onProgress: (file, bytes, total) => this.#onProgress({ model, file, bytes, total }),
      });
      const sync = { model, folder: join(this.#folder, model), files, record, staged, signal };
      return await this.#bring(sync);
    } finally {
      close();
    }
  }

  async #list(
    spec: Exclude<ModelSourceSpec, LocalSource>,
    model: string,
    record: FetchRecord,
    signal: AbortSignal,
  ): Promise<{ files: SourceFile[]; close(): void }> {
    const patience = this.#patience;
    if (spec.type === 's3') {
      const known = (path: string, etag: string | null): string | null => record.known(path, etag);
      return listS3Source(spec, model, { patience, known }, signal);
    }
    const options = { patience, secrets: this.#secrets, fetch: this.#fetch };
    return { files: await listHttpSource(spec, model, options, signal), close: () => undefined };
  }

  /** The steps of a sync: small things first, so that a faulty model costs little. */
  async #bring({ model, folder, files, record, staged, signal }: Sync): Promise<SyncResult> {
    const wanted = new Map<string, WantedFile>(files.map((file) => [file.path, file]));
    const stage = async (some: SourceFile[]): Promise<void> => {
      await staged.stage(some, signal);
      for (const { path } of some) wanted.set(path, staged.found(path));
    };
    const local = await this.#localHashes(folder);

    const config = files.filter((file) => file.path === CONFIG_FILE);
    const configChanged = config.some((file) => file.sha256 !== local.get(file.path));
    if (configChanged) await stage(config);
    const text = await readFile(
      configChanged ? staged.pathOf(CONFIG_FILE) : join(folder, CONFIG_FILE),
      'utf8',
    );
    checkConfig(text, [...wanted.keys()], model);

    await stage(files.filter((file) => file.path !== CONFIG_FILE && file.sha256 === null));
    const stale = staleVersions({ model, folder, wanted, local, recorded: record.files });
    const isStale = ({ path }: SourceFile): boolean => stale.has(versionOf(path) ?? '');
    const isOther = (file: SourceFile): boolean =>
      !isStale(file) && !isFixed(file.path) && wanted.get(file.path)?.sha256 !== local.get(file.path);
    const needed = files.filter((file) => isStale(file) || isOther(file));
    await stage(needed);

    const single = needed.filter(isOther).map((file) => file.path);
    const gone = withdrawn(wanted, record).filter((path) => local.has(path));
    await record.write(recordOf(files, wanted, record));
    if (needed.length > 0)
      await staged.publish(
        needed.map((file) => file.path),
        { files: single, versions: [...stale] },
        folder,
      );
    for (const path of gone) await rm(join(folder, path), { force: true });
    await staged.clear();
    return { folder, versions: versionsOf(wanted.keys()), changed: [...stale, ...single, ...gone] };
  }

  /** sha256 by path of what the cache has of the model. */
  async #localHashes(folder: string): Promise<Map<string, string>> {
    const found = await this.#hashes.ofFolder(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return new Map(found);
  }
}

interface Sync {
  model: string;
  folder: string;
  files: SourceFile[];
  record: FetchRecord;
  staged: StagedFiles;
  signal: AbortSignal;
}

/** Files that came from the source, may change, and are no longer there; such as a golden case that was wrong. */
function withdrawn(wanted: ReadonlyMap<string, WantedFile>, record: FetchRecord): string[] {
  const listed = new Set<string | null>([null, ...versionsOf(wanted.keys())]);
  return [...record.files.keys()].filter(
    (path) => !wanted.has(path) && !isFixed(path) && listed.has(versionOf(path)),
  );
}

/** What is wanted now; versions that have left the source keep their entries, as they keep their folders. */
function recordOf(
  files: readonly SourceFile[],
  wanted: ReadonlyMap<string, WantedFile>,
  record: FetchRecord,
): Map<string, RecordedFile> {
  const listed = new Set<string | null>([null, ...versionsOf(wanted.keys())]);
  const all = new Map([...record.files].filter(([path]) => !listed.has(versionOf(path))));
  for (const { path, etag } of files) {
    const found = wanted.get(path);
    if (found?.sha256) all.set(path, { sha256: found.sha256, etag: found.etag ?? etag });
  }
  return all;
}

/** @throws RemudaError invalid_request */
function checkedSpec(model: string, source: ModelSourceSpec): ModelSourceSpec {
  const name = ModelName.safeParse(model);
  if (!name.success)
    throw new RemudaError(
      'invalid_request',
      `"${model}" is not a name of a model: expected ${name.error.issues[0]?.message}`,
    );
  const spec = ModelSourceSpec.safeParse(source);
  if (spec.success) return spec.data;
  const issue = spec.error.issues[0];
  throw new RemudaError(
    'invalid_request',
    `the source of ${model}: ${issue?.path.join('.')}: ${issue?.message}`,
  );
}

async function checkLocal(model: string, { path }: LocalSource, hashes: FileHashes): Promise<SyncResult> {
  const folder = resolve(path);
  const found = await scanModelFolder(folder, model, hashes);
  const versions = found.versions.filter((version) => version.complete).map(({ version }) => version);
  if (found.config !== null && versions.length > 0) return { folder, versions, changed: [] };
  const reasons = found.problems.map((problem) => problem.message);
  throw new ModelLoadError(`the source of ${model}, ${folder}, is not a model: ${reasons.join('; ')}`, {
    reasons,
  });
}
