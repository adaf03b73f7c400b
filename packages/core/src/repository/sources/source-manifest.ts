/** Manifests: the list of a model's files that a publisher writes and a fetching worker checks everything against. */
import { readdir, rename, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { MANIFEST_FILE, SourceManifest, SourcePath } from '@remuda/schemas';
import { RemudaError } from '../../errors.js';
import { FileHashes } from '../file-hashes.js';
import { CONFIG_FILE } from '../manifests.js';
import { clashOf, invalid, versionsOf } from './source-files.js';

/** No manifest needs more: 10 000 files with long names. */
export const MANIFEST_LIMIT_BYTES = 16 * 1024 * 1024;

/** @throws RemudaError source_invalid with the address and the entry at fault */
export function parseManifest(text: string, address: string, model: string): SourceManifest {
  const parsed = SourceManifest.safeParse(parseJson(text, address));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw invalid(`${address}: ${issue?.path.join('.') || 'the manifest'}: ${issue?.message}`, {
      violations: parsed.error.issues.map((each) => `${each.path.join('.')}: ${each.message}`),
    });
  }
  const manifest = parsed.data;
  if (manifest.model !== undefined && manifest.model !== model)
    throw invalid(
      `${address} is of the model "${manifest.model}", asked for as "${model}"; register it as "${manifest.model}", or take "model" out of the manifest`,
    );
  checkPaths(
    manifest.files.map((file) => file.path),
    address,
  );
  return manifest;
}

/** A model needs its configuration and a version, and names that a disk can hold. @throws RemudaError source_invalid */
export function checkPaths(paths: readonly string[], address: string): void {
  const bad = paths.find((path) => !SourcePath.safeParse(path).success);
  if (bad !== undefined)
    throw invalid(`${address}: "${bad}": ${SourcePath.safeParse(bad).error?.issues[0]?.message}`);
  const clash = clashOf(paths);
  if (clash !== undefined)
    throw invalid(`${address}: "${clash}" is there twice, or is both a file and a folder; rename one`);
  if (!paths.includes(CONFIG_FILE)) throw invalid(`${address} has no ${CONFIG_FILE}; a model needs one`);
  if (versionsOf(paths).length === 0)
    throw invalid(`${address} has no version; put the model into 1/model.onnx beside ${CONFIG_FILE}`);
}

/**
 * Writes manifest.json into the folder of a model, for publishing it: size and sha256 of each file; hidden files are
 * left out. Upload it last.
 * @param options.model when given, the model can only be registered under this name
 * @throws RemudaError source_invalid when the folder is no model
 */
export async function writeManifest(
  folder: string,
  { model }: { model?: string } = {},
): Promise<SourceManifest> {
  const root = resolve(folder);
  await readdir(root).catch((cause: unknown) => {
    throw new RemudaError(
      'source_invalid',
      `${root} cannot be read; give the folder of a model`,
      {},
      { cause },
    );
  });
  const hashed = (await new FileHashes().ofFolder(root)).filter(([path]) => path !== MANIFEST_FILE);
  checkPaths(
    hashed.map(([path]) => path),
    root,
  );
  const files = await Promise.all(
    hashed.map(async ([path, sha256]) => ({ path, size: (await stat(join(root, path))).size, sha256 })),
  );
  const manifest = SourceManifest.parse({ ...(model === undefined ? {} : { model }), files });
  // Renamed into place: a server that gives out this folder never gives half a manifest.
  const temporary = join(root, `.${MANIFEST_FILE}.${process.pid}`);
  await writeFile(temporary, `${JSON.stringify(manifest, null, 2)}\n`);
  await rename(temporary, join(root, MANIFEST_FILE));
  return manifest;
}

function parseJson(text: string, address: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalid(
      `${address} is not JSON; expected a manifest: {"files": [{"path", "size", "sha256"}]}`,
      {},
      cause,
    );
  }
}
