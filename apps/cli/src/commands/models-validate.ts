/** `remuda models validate`: tries a model as it lies at a path; each finding says what to do. */
import { resolve } from 'node:path';
import { RemudaError } from '@remuda/core/errors';
import { isValid, type PathValidation, validatePath } from '@remuda/core/validation/validate-path';
import { CliError, reasonOf } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { TrialFlags } from '../model-tools.js';
import { withProgress } from '../terminal/progress.js';
import type { Terminal } from '../terminal/terminal.js';
import { type CommandContext, printJson } from './context.js';
import { findingLines } from './doctor.js';

export interface ValidateFlags extends TrialFlags {
  version?: string;
  json?: boolean;
}

export async function validate(
  path: string,
  flags: ValidateFlags,
  { terminal, config }: CommandContext,
): Promise<number> {
  const { version, inputs: files, dims } = flags;
  const found = await withProgress(terminal, `trying ${path}`, () =>
    validatePath(resolve(config.cwd, path), { version, files, dims }),
  ).catch((error: unknown) => {
    throw trialError(error);
  });
  if (flags.json) printJson(terminal, validationJson(found));
  else for (const line of validationLines(found, terminal)) terminal.out(line);
  return isValid(found) ? EXIT.ok : EXIT.failed;
}

/** A path where no model lies is a fault of the command line, not of a model. */
export function trialError(error: unknown): CliError {
  const isMissing = error instanceof RemudaError && error.code === 'model_not_found';
  return new CliError(reasonOf(error), isMissing ? EXIT.usage : EXIT.failed, { cause: error });
}

export function validationLines(found: PathValidation, terminal: Terminal): string[] {
  const { suggestedConfig, digest } = found;
  return [
    ...(digest === null ? [] : [terminal.colours.dim(`digest ${digest}`)]),
    ...findingLines(found.findings, terminal),
    ...(suggestedConfig === null
      ? []
      : ['', 'A model.yaml to begin with:', '', ...suggestedConfig.trimEnd().split('\n')]),
  ];
}

export function validationJson(found: PathValidation) {
  const { model, version, digest, findings, batching, suggestedConfig } = found;
  return {
    ok: isValid(found),
    model,
    version,
    digest,
    findings,
    batching,
    suggested_config: suggestedConfig,
  };
}
