/** Version folders as an operator adds them: written under another name, then renamed, so that none is seen half. */
import { cp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Adds version `to` of a model with the files of version `from`. */
export async function addVersion(models: string, model: string, from: number, to: number): Promise<void> {
  const folder = join(models, model);
  const hidden = join(folder, `.${to}`);
  await cp(join(folder, String(from)), hidden, { recursive: true });
  await rename(hidden, join(folder, String(to)));
}

export async function removeVersion(models: string, model: string, version: number): Promise<void> {
  await rm(join(models, model, String(version)), { recursive: true });
}
