/**
 * A model as it lies anywhere: a model folder (model.yaml and version folders), a version folder in one, or a bare ONNX
 * file. Shown as a repository of its own, a temporary folder of links, so that it is read just as a worker would.
 */
import { access, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { ModelName } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { CONFIG_FILE, type RepositoryModel, scanRepository } from '../repository/manifests.js';

export interface ModelAtPath {
  model: RepositoryModel;
  /** The version that is meant: the one named, else the newest; null: there is none. */
  version: string | null;
  /** True: only a file was given; its model.yaml is a guess. */
  bare: boolean;
  /** A text with the paths of the temporary folder as they were given. */
  withGivenPaths(text: string): string;
  /** Removes the temporary folder. */
  close(): Promise<void>;
}

/** @throws RemudaError model_not_found when there is no model at the path */
export async function modelAtPath(path: string, version?: string): Promise<ModelAtPath> {
  const at = resolve(path);
  const found = await stat(at).catch(() => undefined);
  if (!found) throw new RemudaError('model_not_found', `${at}: there is no such file or folder`);
  const root = await mkdtemp(join(tmpdir(), 'remuda-model-'));
  const close = (): Promise<void> => rm(root, { recursive: true, force: true });
  try {
    const named = found.isFile() ? await linkFile(at, root) : await linkFolder(at, root);
    const { models } = await scanRepository(root);
    const model = models[0] as RepositoryModel;
    const meant = version ?? named.version ?? model.versions.at(-1)?.version ?? null;
    const withGivenPaths = (text: string): string => text.replaceAll(named.link, named.real);
    return { model, version: meant, bare: found.isFile(), withGivenPaths, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What was linked to, and where the link is. */
interface Linked {
  link: string;
  real: string;
  version?: string;
}

async function linkFile(file: string, root: string): Promise<Linked> {
  if (extname(file) !== '.onnx')
    throw new RemudaError('model_not_found', `${file}: neither a folder nor an .onnx file`);
  const folder = join(root, modelNameOf(file));
  await mkdir(join(folder, '1'), { recursive: true });
  await writeFile(join(folder, CONFIG_FILE), 'harness: onnx\n');
  for (const { from, name } of await filesOfOnnx(file)) await symlink(from, join(folder, '1', name));
  return { link: join(folder, '1', 'model.onnx'), real: file, version: '1' };
}

async function linkFolder(folder: string, root: string): Promise<Linked> {
  if (await exists(join(folder, CONFIG_FILE))) {
    const link = join(root, basename(folder));
    await symlink(folder, link);
    return { link, real: folder };
  }
  const parent = dirname(folder);
  if (!(await exists(join(parent, CONFIG_FILE))))
    throw new RemudaError(
      'model_not_found',
      `${folder}: no ${CONFIG_FILE} in it or above it; give a model folder, or an .onnx file`,
    );
  const link = join(root, basename(parent));
  await symlink(parent, link);
  return { link, real: parent, version: basename(folder) };
}

/** A name as models have it, from the name of a file or folder. */
export function modelNameOf(path: string): string {
  const name = basename(path, extname(path) === '.onnx' ? '.onnx' : '')
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '');
  return ModelName.safeParse(name).success ? name : 'model';
}

/** The file as model.onnx, and beside it, under their own names, those that hold its weights: model.onnx.data and so on. */
export async function filesOfOnnx(file: string): Promise<{ from: string; name: string }[]> {
  const own = basename(file);
  const beside = (await readdir(dirname(file))).filter(
    (name) => name !== own && name.startsWith(basename(file, '.onnx')) && /data$/.test(name),
  );
  return [
    { from: file, name: 'model.onnx' },
    ...beside.map((name) => ({ from: join(dirname(file), name), name })),
  ];
}

export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
