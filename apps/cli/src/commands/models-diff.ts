/** `remuda models diff`: how two versions differ. Exit code 0 whether they do or not, as the answer is no failure. */
import {
  type Difference,
  diffVersions,
  type OutputDifference,
  type VersionDiff,
} from '@remuda/core/validation/diff-versions';
import { CliError, reasonOf, usageError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { TrialFlags } from '../model-tools.js';
import { plural } from '../terminal/figures.js';
import { withProgress } from '../terminal/progress.js';
import type { Terminal } from '../terminal/terminal.js';
import { type CommandContext, printJson } from './context.js';
import { modelNamed, repositoryOf, sourceOf } from './model-of-repository.js';

export interface DiffFlags extends TrialFlags {
  models?: string;
  json?: boolean;
}

export async function diff(
  named: readonly (string | undefined)[],
  flags: DiffFlags,
  context: CommandContext,
): Promise<number> {
  const { terminal } = context;
  const repository = repositoryOf(context, flags.models);
  const [a, b] = await Promise.all(
    twoVersions(named).map(async ([name, version]) => sourceOf(await modelNamed(repository, name), version)),
  );
  if (!a || !b) throw usageError('name two versions');
  const found = await withProgress(terminal, `comparing ${a.modelId} and ${b.modelId}`, () =>
    diffVersions(a, b, { files: flags.inputs, dims: flags.dims }),
  ).catch((error: unknown) => {
    throw new CliError(reasonOf(error), undefined, { cause: error });
  });
  if (flags.json) printJson(terminal, jsonOf(found));
  else for (const line of diffLines(found, terminal)) terminal.out(line);
  return EXIT.ok;
}

/** `a@1 b@2`, or `a 1 2`. */
function twoVersions([a, b, c]: readonly (string | undefined)[]): [string, string][] {
  if (c !== undefined) return [b, c].map((version) => [a as string, version as string]);
  return [a, b].map((text) => {
    const [, name, version] = /^(.+)@([1-9]\d*)$/.exec(text ?? '') ?? [];
    if (name === undefined || version === undefined)
      throw usageError(`"${text}" is no version: name@version, or a name and two versions`);
    return [name, version];
  });
}

export function diffLines(found: VersionDiff, { colours }: Terminal): string[] {
  const { a, b, files, config, signature } = found;
  return [
    `${a.model_id}  ${a.digest}`,
    `${b.model_id}  ${b.digest}${a.digest === b.digest ? '  (the same)' : ''}`,
    ...section('files', files, colours.bold, (sum) => sum.slice(0, 12)),
    ...section('settings', config, colours.bold),
    ...section('signature', signature, colours.bold),
    '',
    colours.bold('answers'),
    ...answerLines(found),
  ];
}

function section(
  title: string,
  differences: readonly Difference[],
  paint: (text: string) => string,
  shown: (value: string) => string = (value) => value,
): string[] {
  const text = (value: string | null): string => (value === null ? 'not there' : shown(value));
  const lines = differences.map(({ what, a, b }) => `  ${what}: ${text(a)} → ${text(b)}`);
  return ['', paint(title), ...(lines.length > 0 ? lines : ['  no difference'])];
}

function answerLines({ outputs, items, inputs, unanswered }: VersionDiff): string[] {
  const lines = outputs?.map(outputLine) ?? [];
  const source = { files: 'given', golden: 'golden', synthetic: 'made-up' }[inputs ?? 'synthetic'];
  return [
    ...(items > 0 ? [`  to ${plural(items, `${source} input`)}:`] : []),
    ...lines,
    ...(unanswered === null ? [] : [`  not all could be compared: ${unanswered}`]),
  ];
}

function outputLine({ output, incomparable, maxAbsError, maxRelError, top1 }: OutputDifference): string {
  if (incomparable !== null) return `  ${output} ${incomparable}`;
  const changed = top1 ? `, highest value elsewhere in ${top1.changed} of ${top1.slices}` : '';
  return `  ${output}: max abs error ${short(maxAbsError)}, max rel error ${short(maxRelError)}${changed}`;
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function jsonOf({ outputs, ...found }: VersionDiff) {
  const plain = outputs?.map(({ output, incomparable, maxAbsError, maxRelError, top1 }) => ({
    output,
    incomparable,
    max_abs_error: maxAbsError,
    max_rel_error: maxRelError,
    top1,
  }));
  return { ...found, outputs: plain ?? null };
}
