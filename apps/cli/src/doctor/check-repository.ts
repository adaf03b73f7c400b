/** The model repository: each model that cannot be served, and why; with `load` also what only loading it tells. */

import { inspectModel } from '@remuda/core/inference/inspect-model';
import { type RepositoryModel, scanRepository, toModelSource } from '@remuda/core/repository/manifests';
import { reasonOf } from '../cli-error.js';
import { plural } from '../terminal/figures.js';
import { type Finding, fail, ok, warn } from './finding.js';

const REMEDY =
  'Correct it; workers serve the other models meanwhile. The form of model.yaml: docs/models.md.';

export async function checkRepository(folder: string, { load }: { load: boolean }): Promise<Finding[]> {
  let models: RepositoryModel[];
  try {
    ({ models } = await scanRepository(folder));
  } catch (error) {
    return [fail('models', reasonOf(error), 'Name the folder with --models or REMUDA_MODELS.')];
  }
  if (models.length === 0) {
    return [
      warn(
        'models',
        `${folder} is empty`,
        'Put a model into <name>/1/model.onnx with a model.yaml beside it.',
      ),
    ];
  }
  const servable = models.filter((model) => model.config && model.defaultVersion);
  const unloadable = load ? await loadFaults(servable) : [];
  const how = load ? loadedText(servable.length, unloadable.length) : ' (--load also loads each)';
  const found = ok('models', `${plural(servable.length, 'model')} in ${folder}${how}`);
  return [found, ...models.flatMap(problemsOf), ...unloadable];
}

/** What --load has found of the models that could be served. */
export function loadedText(all: number, failed: number): string {
  if (all === 0) return '';
  return failed === 0 ? ', each loaded' : `, ${all - failed} of them loaded`;
}

function problemsOf({ name, problems, defaultVersion }: RepositoryModel): Finding[] {
  // A version that is still being copied hinders no other of its model.
  return problems.map(({ message, version }) =>
    version !== null && defaultVersion !== null
      ? warn(`model ${name}`, message, REMEDY)
      : fail(`model ${name}`, message, REMEDY),
  );
}

/** One after the other: each child loads a whole model. */
async function loadFaults(models: readonly RepositoryModel[]): Promise<Finding[]> {
  const faults: Finding[] = [];
  for (const model of models) {
    if (!model.defaultVersion) continue;
    try {
      await inspectModel(toModelSource(model, model.defaultVersion, 'cpu'));
    } catch (error) {
      faults.push(fail(`model ${model.name}`, reasonOf(error), REMEDY));
    }
  }
  return faults;
}
