/** `remuda models split` without --stable: compares with what requests get now, and says what that is. */
import type { AdminModel } from '@remuda/schemas';
import { usageError } from '../cli-error.js';
import { apiOf, type CommandContext } from './context.js';
import { type EditOptions, editModel } from './edit-model.js';
import { type SplitOptions, sharesOf, splitEdit } from './model-edits.js';

export async function splitModel(
  model: string,
  shares: readonly string[],
  options: EditOptions & SplitOptions,
  context: CommandContext,
): Promise<number> {
  const { terminal, config } = context;
  if (options.end || options.stable !== undefined || shares.length === 0)
    return editModel(model, splitEdit(model, shares, options), options, context);
  const weights = sharesOf(shares);
  const described = await apiOf(options, config).adminModel(model);
  const { ref, why } = stableOf(described, weights);
  const edit = splitEdit(model, shares, { ...options, stable: ref });
  terminal.note(`compared with ${why}; --stable names another`);
  return editModel(model, edit, options, context);
}

interface Stable {
  ref: string;
  why: string;
}

/** @throws CliError where nothing is served yet, or nothing would be left to compare with */
export function stableOf(
  { model, deployment, serving, default_version }: AdminModel,
  weights: Readonly<Record<string, number>>,
): Stable {
  const version = deployment.aliases.stable ?? serving?.refs.default?.version ?? default_version;
  if (version === null) throw usageError(`${model} serves no version yet: say with --stable which it is.`);
  const why =
    deployment.aliases.stable === undefined
      ? `version ${version}, which default leads to`
      : `alias stable, which leads to version ${version}`;
  // Shares that name the version itself say what it gets.
  const hasShare = Object.hasOwn(weights, version);
  if (hasShare && Object.values(weights).reduce((sum, weight) => sum + weight, 0) < 100)
    throw usageError(`The rest would go to ${why}, and that has a share: say with --stable where it goes.`);
  return { ref: deployment.aliases.stable === undefined || hasShare ? version : 'stable', why };
}
