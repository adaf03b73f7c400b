/** For tests: the tiny models of test/models and the bundled ones, as ModelSources. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HarnessConfig } from '@remuda/schemas';
import { parse } from 'yaml';
import type { ModelSource } from '../harness/harness.js';

const root = new URL('../../../../', import.meta.url);

/** Folder of the bundled models; their files come from `node models/prepare.mjs`. */
export const bundledModels = fileURLToPath(new URL('models/', root));
export const samples = fileURLToPath(new URL('samples/', root));

/** A fresh folder with all tiny models, crash-on-mark included. */
export async function makeModels(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'remuda-models-'));
  const { makeTestModels } = await import(new URL('test/models/make-models.mjs', root).href);
  const { makeCrashModel } = await import(new URL('test/models/crash-model.mjs', root).href);
  await makeTestModels(folder);
  await makeCrashModel(folder);
  return folder;
}

/** Fills the version folders of the bundled models. */
export async function prepareBundled(): Promise<void> {
  const { prepareModels } = await import(new URL('models/prepare.mjs', root).href);
  await prepareModels();
}

/** Version 1 of a model in a repository folder; `changes` replaces keys of its model.yaml. */
export function sourceOf(
  repository: string,
  model: string,
  changes: Record<string, unknown> = {},
): ModelSource {
  const yaml = parse(readFileSync(join(repository, model, 'model.yaml'), 'utf8')) as Record<string, unknown>;
  return {
    modelId: `${model}@1`,
    model,
    version: '1',
    digest: 'sha256:test',
    folder: join(repository, model, '1'),
    config: HarnessConfig.parse({ ...yaml, ...changes }),
    device: 'cpu',
  };
}
