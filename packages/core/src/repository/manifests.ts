/**
 * What is in a model repository: each model's configuration, its versions with their digests, and what is wrong with
 * it. Faults are data: a broken model is listed with its problems and never hides another.
 *
 *   <folder>/<model>/model.yaml
 *   <folder>/<model>/<number>/<model_path>
 *   <folder>/<model>/<number>/golden/…
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { type AffinityRule, type HarnessConfig, ModelName } from '@remuda/schemas';
import { ModelLoadError, RemudaError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { FileHashes } from './file-hashes.js';
import { parseModelConfig } from './model-config.js';
import { modelFileOf, modelFilesOf, ruleFor } from './model-file.js';
import { isIdentityFile, versionDigest } from './version-digest.js';

export const CONFIG_FILE = 'model.yaml';
const VERSION_FOLDER = /^[1-9]\d{0,8}$/;

export interface RepositoryProblem {
  kind:
    | 'invalid_name'
    | 'missing_config'
    | 'invalid_yaml'
    | 'invalid_config'
    | 'no_versions'
    | 'missing_model_file'
    | 'missing_harness_file'
    | 'unreadable'
    /** From a source: on its way. */
    | 'fetching';
  /** The version that it is about; null: the whole model. */
  version: string | null;
  /** Absolute path of the file or folder at fault. */
  file: string;
  line: number | null;
  /** Complete: with file (relative to the repository) and line. */
  message: string;
}

export interface ModelVersion {
  version: string;
  /** Absolute path. */
  folder: string;
  /** sha256 over names and contents of the version's files and what of the configuration changes its answers. */
  digest: string;
  /** False: a file that a rule of the model loads is not there (yet), so it cannot be loaded. */
  complete: boolean;
}

export interface RepositoryModel {
  name: string;
  /** Absolute path. */
  folder: string;
  /** null: missing or faulty, as `problems` says. */
  config: HarnessConfig | null;
  /** By number, lowest first; empty without a configuration. */
  versions: ModelVersion[];
  /** The highest complete one: a version that is still being copied takes no traffic. */
  defaultVersion: string | null;
  problems: RepositoryProblem[];
}

export interface RepositoryListing {
  /** Absolute path. */
  folder: string;
  /** By name. */
  models: RepositoryModel[];
}

/** Kept for the life of the process, so that a second scan reads only what has changed. */
const sharedHashes = new FileHashes();

/** @throws RemudaError model_load_failed when the folder itself cannot be read */
export async function scanRepository(folder: string, hashes = sharedHashes): Promise<RepositoryListing> {
  const root = resolve(folder);
  const names = await subfolders(root).catch((cause: unknown) => {
    throw new RemudaError('model_load_failed', `the model repository ${root} cannot be read`, {}, { cause });
  });
  const models = await Promise.all(names.map((name) => scanModel(root, name, hashes)));
  return { folder: root, models };
}

/**
 * What a harness needs to load a version.
 * @param given the rule that places it on the device; default the first that speaks of it
 * @throws RemudaError version_not_found, ModelLoadError
 */
export function toModelSource(
  model: RepositoryModel,
  version: string,
  device: string,
  given?: AffinityRule,
): ModelSource {
  const found = model.versions.find((candidate) => candidate.version === version);
  const problems = model.problems.filter(
    (problem) => problem.version === null || problem.version === version,
  );
  if (model.config === null || found?.complete === false) {
    const reasons = problems.map((problem) => problem.message);
    throw new ModelLoadError(`${model.name}@${version} cannot be loaded: ${reasons.join('; ')}`, { reasons });
  }
  if (!found) {
    const versions = model.versions.map((known) => known.version);
    throw new RemudaError(
      'version_not_found',
      `${model.name} has no version ${version}; it has ${versions.join(', ') || 'none'}`,
      { versions },
    );
  }
  const { config, name } = model;
  const { digest, folder } = found;
  const rule = given ?? ruleFor(config, device);
  const file = modelFileOf(config, rule);
  return {
    modelId: `${name}@${version}`,
    model: name,
    version,
    digest,
    folder,
    config,
    device,
    ...(file === config.model_path ? {} : { modelFile: file }),
    allowCpuFallback: rule?.allow_cpu_fallback ?? false,
  };
}

/** One model, wherever its folder is. Faults are in `problems`, as in a repository. */
export function scanModelFolder(
  folder: string,
  name: string,
  hashes = sharedHashes,
): Promise<RepositoryModel> {
  const path = resolve(folder);
  return scanModel(dirname(path), name, hashes, path);
}

async function scanModel(
  root: string,
  name: string,
  hashes: FileHashes,
  folder = join(root, name),
): Promise<RepositoryModel> {
  const scan = new ModelScan(root, name, folder, hashes);
  await scan.run().catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    scan.report('unreadable', scan.model.folder, `cannot be read: ${reason}`);
  });
  return scan.model;
}

/** The scan of one model: its steps share the listing that they fill. */
class ModelScan {
  readonly model: RepositoryModel;
  readonly #root: string;
  readonly #hashes: FileHashes;

  constructor(root: string, name: string, folder: string, hashes: FileHashes) {
    this.#root = root;
    this.#hashes = hashes;
    this.model = { name, folder, config: null, versions: [], defaultVersion: null, problems: [] };
  }

  async run(): Promise<void> {
    const { name, folder } = this.model;
    if (!ModelName.safeParse(name).success) {
      const rule = 'a model is named with lower-case letters, digits, ".", "_", "-"';
      return this.report('invalid_name', folder, `${rule}; rename the folder`);
    }
    await this.#readConfig();
    if (this.model.config) await this.#readVersions(this.model.config);
  }

  report(
    kind: RepositoryProblem['kind'],
    file: string,
    message: string,
    at: { version?: string; line?: number | null } = {},
  ): void {
    const { version = null, line = null } = at;
    const where = `${relative(this.#root, file)}${line === null ? '' : `:${line}`}`;
    this.model.problems.push({ kind, version, file, line, message: `${where}: ${message}` });
  }

  async #readConfig(): Promise<void> {
    const file = join(this.model.folder, CONFIG_FILE);
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (text === undefined) {
      return this.report('missing_config', file, 'missing; a model needs at least "harness: onnx" in it');
    }
    const parsed = parseModelConfig(text);
    if ('config' in parsed) this.model.config = parsed.config;
    else {
      const kind = parsed.invalidYaml ? 'invalid_yaml' : 'invalid_config';
      for (const { line, message } of parsed.faults) this.report(kind, file, message, { line });
    }
  }

  async #readVersions(config: HarnessConfig): Promise<void> {
    const { model } = this;
    const harnessHash = await this.#harnessHash(config);
    const names = (await subfolders(model.folder)).filter((name) => VERSION_FOLDER.test(name));
    if (names.length === 0) {
      const wanted = `1/${config.model_path}`;
      return this.report('no_versions', model.folder, `has no versions; put the model into ${wanted}`);
    }
    const versions = await Promise.all(names.map((name) => this.#readVersion(name, config, harnessHash)));
    model.versions = versions
      .filter((version) => version !== undefined)
      .sort((a, b) => Number(a.version) - Number(b.version));
    model.defaultVersion = model.versions.findLast((version) => version.complete)?.version ?? null;
  }

  /** Of the harness file, where the configuration names one. */
  async #harnessHash(config: HarnessConfig): Promise<string | undefined> {
    if (!config.harness.startsWith('./')) return undefined;
    const file = join(this.model.folder, config.harness);
    if (await isFile(file)) return this.#hashes.ofFile(file);
    this.report('missing_harness_file', file, 'missing; model.yaml names it as the harness');
    return undefined;
  }

  async #readVersion(
    version: string,
    config: HarnessConfig,
    harnessHash: string | undefined,
  ): Promise<ModelVersion | undefined> {
    const folder = join(this.model.folder, version);
    try {
      const files = await this.#hashes.ofFolder(folder, isIdentityFile);
      const present = await Promise.all(
        modelFilesOf(config).map((file) => this.#hasModelFile(version, folder, file)),
      );
      const digest = versionDigest(config, harnessHash, files);
      return { version, folder, digest, complete: present.every(Boolean) };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.report('unreadable', folder, `cannot be read: ${reason}`, { version });
      return undefined;
    }
  }

  async #hasModelFile(version: string, folder: string, modelPath: string): Promise<boolean> {
    const file = resolve(folder, modelPath);
    const inside = relative(folder, file);
    if (inside.startsWith('..') || isAbsolute(inside)) {
      this.report('invalid_config', file, `model_path "${modelPath}" leads out of the version folder`, {
        version,
      });
      return false;
    }
    if (await isFile(file)) return true;
    this.report('missing_model_file', file, 'the model file is missing', { version });
    return false;
  }
}

/** Names of the folders in a folder, links to folders too; hidden ones are left out. */
export async function subfolders(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => !name.startsWith('.')).sort();
  const isFolder = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        (found) => found.isDirectory(),
        () => false,
      ),
    ),
  );
  return names.filter((_, index) => isFolder[index]);
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
