/** A version of a model of the repository, by name, for commands that work on files. */
import type { ModelSource } from '@remuda/core/harness/harness';
import { type RepositoryModel, scanRepository, toModelSource } from '@remuda/core/repository/manifests';
import { CliError, reasonOf, usageError } from '../cli-error.js';
import { modelsFolderOf } from '../workspace.js';
import type { CommandContext } from './context.js';

export function repositoryOf({ config }: CommandContext, given: string | undefined): string {
  return modelsFolderOf(config.cwd, given ?? config.modelsFolder);
}

/** @throws CliError naming the models that there are, or what is wrong with this one */
export async function modelNamed(repository: string, name: string): Promise<RepositoryModel> {
  const { models } = await scanRepository(repository).catch((error: unknown) => {
    throw new CliError(`${reasonOf(error)}; name the folder with --models or REMUDA_MODELS`);
  });
  const found = models.find((model) => model.name === name);
  if (found) return found;
  const known = models.map((model) => model.name).join(', ') || 'none';
  throw usageError(`no model "${name}" in ${repository}; there are: ${known}`);
}

/** @param version default: the newest that is complete. @throws CliError */
export function sourceOf(model: RepositoryModel, version = model.defaultVersion ?? undefined): ModelSource {
  if (version === undefined)
    throw new CliError(
      model.problems.map(({ message }) => message).join('\n') || `${model.name} has no version`,
    );
  try {
    return toModelSource(model, version, 'cpu');
  } catch (error) {
    throw new CliError(reasonOf(error), undefined, { cause: error });
  }
}
