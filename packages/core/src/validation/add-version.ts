/**
 * `remuda models add`: a file or folder becomes the next version of a model. It is copied into a hidden folder of the
 * repository, which no scan looks into, validated there as it will be, and then renamed into place: workers see the
 * whole version or nothing.
 */
import { randomBytes } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { ModelName } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import type { TrialOptions } from '../profile/trial-items.js';
import { CONFIG_FILE, type RepositoryModel, scanRepository } from '../repository/manifests.js';
import { parseModelConfig } from '../repository/model-config.js';
import { exists, filesOfOnnx, modelNameOf } from './model-at-path.js';
import { suggestConfig } from './suggest-config.js';
import { isValid, type PathValidation, validateModel, withDetail } from './validate-path.js';
import { validateVersion } from './validate-version.js';

export interface AddOptions extends TrialOptions {
  /** Absolute path of the repository. */
  repository: string;
  /** Default: the name of the file or folder. */
  name?: string;
  /** Default: one more than the highest there is. */
  version?: string;
}

export interface AddedVersion extends PathValidation {
  /** False: something failed, as the findings say; nothing was added. */
  added: boolean;
  /** Absolute path of the version folder. */
  folder: string;
  /** True: the model is new to the repository. */
  newModel: boolean;
}

/** What is to be added, as it lies. */
interface Offer {
  name: string;
  /** Absolute path of a model.yaml and of what lies beside it; null: none was given. */
  modelFolder: string | null;
  /** Copies the files of the version into a folder. */
  copyTo(folder: string, modelPath: string): Promise<void>;
}

const VERSION = /^[1-9]\d{0,8}$/;

/** @throws RemudaError model_not_found, invalid_request; nothing is left behind */
export async function addVersion(path: string, options: AddOptions): Promise<AddedVersion> {
  const offer = await offerAt(resolve(path));
  const name = options.name ?? offer.name;
  if (!ModelName.safeParse(name).success)
    throw new RemudaError(
      'invalid_request',
      `"${name}" is no name of a model: lower-case letters, digits, ".", "_", "-"`,
    );
  const target = join(options.repository, name);
  const newModel = !(await exists(join(target, CONFIG_FILE)));
  const version = options.version ?? (await nextVersion(target));
  if (!VERSION.test(version))
    throw new RemudaError('invalid_request', `"${version}" is no version: a whole number from 1`);
  if (await exists(join(target, version)))
    throw new RemudaError(
      'invalid_request',
      `${name} has a version ${version} already: versions never change, add the next`,
    );

  const staging = join(options.repository, `.adding-${randomBytes(6).toString('hex')}`);
  try {
    await stage({ staging, name, version, offer, target, newModel });
    const validation = await validateStaged(staging, name, version, offer, newModel, options);
    const added = isValid(validation);
    if (added) await moveIn({ staging, name, version, target, newModel });
    const findings = validation.findings.map((finding) =>
      withDetail(finding, (text) => text.replaceAll(staging, options.repository)),
    );
    return { ...validation, findings, added, folder: join(target, version), newModel };
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

async function offerAt(path: string): Promise<Offer> {
  const found = await stat(path).catch(() => undefined);
  if (!found) throw new RemudaError('model_not_found', `${path}: there is no such file or folder`);
  if (found.isFile()) {
    if (!path.endsWith('.onnx'))
      throw new RemudaError('model_not_found', `${path}: neither a folder nor an .onnx file`);
    return {
      name: modelNameOf(path),
      modelFolder: null,
      copyTo: (folder, modelPath) => copyFile(path, folder, modelPath),
    };
  }
  const copyFrom = (from: string) => async (folder: string) =>
    cp(from, folder, { recursive: true, dereference: true });
  if (await exists(join(path, CONFIG_FILE))) {
    const newest = (await versionsIn(path)).at(-1);
    if (newest === undefined)
      throw new RemudaError(
        'model_not_found',
        `${path}: a model folder without a version; put the model into 1/model.onnx`,
      );
    return { name: modelNameOf(path), modelFolder: path, copyTo: copyFrom(join(path, newest)) };
  }
  const parent = dirname(path);
  const isVersion = VERSION.test(basename(path)) && (await exists(join(parent, CONFIG_FILE)));
  return {
    name: modelNameOf(isVersion ? parent : path),
    modelFolder: isVersion ? parent : null,
    copyTo: copyFrom(path),
  };
}

async function copyFile(file: string, folder: string, modelPath: string): Promise<void> {
  await mkdir(dirname(join(folder, modelPath)), { recursive: true });
  for (const { from, name } of await filesOfOnnx(file))
    await cp(from, join(folder, name === 'model.onnx' ? modelPath : name));
}

async function versionsIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => [] as string[]);
  return names.filter((name) => VERSION.test(name)).sort((a, b) => Number(a) - Number(b));
}

async function nextVersion(folder: string): Promise<string> {
  return String(Number((await versionsIn(folder)).at(-1) ?? 0) + 1);
}

interface Staged {
  staging: string;
  name: string;
  version: string;
  target: string;
  newModel: boolean;
}

/** The model as it will be, but with this version alone. */
async function stage({
  staging,
  name,
  version,
  offer,
  target,
  newModel,
}: Staged & { offer: Offer }): Promise<void> {
  const model = join(staging, name);
  await mkdir(model, { recursive: true });
  const like = newModel ? offer.modelFolder : target;
  if (like) await copyBesideVersions(like, model);
  else await writeFile(join(model, CONFIG_FILE), 'harness: onnx\n');
  const parsed = parseModelConfig(await readFile(join(model, CONFIG_FILE), 'utf8'));
  await offer.copyTo(join(model, version), 'config' in parsed ? parsed.config.model_path : 'model.onnx');
}

/** model.yaml, a harness file, labels: everything but versions and what is hidden. */
async function copyBesideVersions(from: string, to: string): Promise<void> {
  for (const name of await readdir(from)) {
    if (VERSION.test(name) || name.startsWith('.')) continue;
    await cp(join(from, name), join(to, name), { recursive: true, dereference: true });
  }
}

async function validateStaged(
  staging: string,
  name: string,
  version: string,
  offer: Offer,
  newModel: boolean,
  trial: TrialOptions,
): Promise<PathValidation> {
  if (newModel && offer.modelFolder === null) await writeSuggestion(staging, name, version, trial);
  return validateModel(await scanned(staging), version, trial);
}

async function scanned(staging: string): Promise<RepositoryModel> {
  const { models } = await scanRepository(staging);
  return models[0] as RepositoryModel;
}

/** A model without a model.yaml gets one from what is found out about it. */
async function writeSuggestion(
  staging: string,
  name: string,
  version: string,
  trial: TrialOptions,
): Promise<void> {
  const model = await scanned(staging);
  const found = model.versions.find((candidate) => candidate.version === version && candidate.complete);
  if (!model.config || !found) return;
  const { config } = model;
  const source = { ...found, modelId: `${name}@${version}`, model: name, config, device: 'cpu' };
  const { signature, batching } = await validateVersion(source, trial);
  if (signature) await writeFile(join(staging, name, CONFIG_FILE), suggestConfig(signature, batching));
}

async function moveIn({ staging, name, version, target, newModel }: Staged): Promise<void> {
  const [from, to] = newModel
    ? [join(staging, name), target]
    : [join(staging, name, version), join(target, version)];
  await rename(from, to).catch((cause: NodeJS.ErrnoException) => {
    throw new RemudaError(
      'invalid_request',
      `${to} could not be put in place (${cause.code}): another has added it meanwhile? Run it again`,
      {},
      { cause },
    );
  });
}
