/** `remuda models add`: a file or folder becomes the next version of a model, once it is found to be fit. */
import { resolve } from 'node:path';
import { addVersion } from '@remuda/core/validation/add-version';
import { EXIT } from '../exit-codes.js';
import type { TrialFlags } from '../model-tools.js';
import { withProgress } from '../terminal/progress.js';
import { type CommandContext, printJson } from './context.js';
import { repositoryOf } from './model-of-repository.js';
import { trialError, validationJson, validationLines } from './models-validate.js';

export interface AddFlags extends TrialFlags {
  name?: string;
  version?: string;
  models?: string;
  json?: boolean;
}

export async function add(path: string, flags: AddFlags, context: CommandContext): Promise<number> {
  const { terminal, config } = context;
  const { name, version, inputs: files, dims } = flags;
  const repository = repositoryOf(context, flags.models);
  const found = await withProgress(terminal, `trying ${path}`, () =>
    addVersion(resolve(config.cwd, path), { repository, name, version, files, dims }),
  ).catch((error: unknown) => {
    throw trialError(error);
  });
  const { added, folder, newModel } = found;
  if (flags.json) printJson(terminal, { ...validationJson(found), added, folder, new_model: newModel });
  else {
    for (const line of validationLines(found, terminal)) terminal.out(line);
    const what = `${found.model}@${found.version}`;
    terminal.out(
      added ? `${what} added${newModel ? ', a new model' : ''}: ${folder}` : `${what} was not added`,
    );
  }
  return added ? EXIT.ok : EXIT.failed;
}
