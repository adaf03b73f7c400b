/** `remuda models diff`: how two versions differ, in their files, settings, signature, and in what they answer. */
import { type ModelSignature, type RawTensor, Tolerance } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { compareOutputs, type OutputComparison } from '../inference/compare-outputs.js';
import { ModelLab } from '../profile/model-lab.js';
import { type TrialItems, type TrialOptions, trialItems } from '../profile/trial-items.js';
import { FileHashes } from '../repository/file-hashes.js';

/** null: it is not there. */
export interface Difference {
  what: string;
  a: string | null;
  b: string | null;
}

export interface OutputDifference
  extends Pick<OutputComparison, 'output' | 'maxAbsError' | 'maxRelError' | 'top1'> {
  /** Why values could not be compared; null: they were. */
  incomparable: string | null;
}

export interface VersionDiff {
  a: { model_id: string; digest: string };
  b: { model_id: string; digest: string };
  /** Name of the file, sha256 of each. */
  files: Difference[];
  /** Key of model.yaml. */
  config: Difference[];
  /** Input or output. */
  signature: Difference[];
  /** null: answers could not be compared, as `unanswered` says. */
  outputs: OutputDifference[] | null;
  unanswered: string | null;
  /** How many inputs both were asked, and where these are from. */
  items: number;
  inputs: TrialItems['from'] | null;
}

/** @throws RemudaError when one of them cannot be loaded */
export async function diffVersions(
  a: ModelSource,
  b: ModelSource,
  trial: TrialOptions = {},
): Promise<VersionDiff> {
  const labs: ModelLab[] = [];
  try {
    for (const source of [a, b]) labs.push(await ModelLab.open(source));
    const signatures = labs.map((lab) => lab.loaded.signature) as [ModelSignature, ModelSignature];
    return {
      a: { model_id: a.modelId, digest: a.digest },
      b: { model_id: b.modelId, digest: b.digest },
      files: differences(await filesOf(a), await filesOf(b)),
      config: differences(flat(a.config), flat(b.config)),
      signature: differences(tensorsOf(signatures[0]), tensorsOf(signatures[1])),
      ...(await answersOf(labs, a, trial)),
    };
  } finally {
    for (const lab of labs) lab.close();
  }
}

async function filesOf({ folder }: ModelSource): Promise<Map<string, string>> {
  return new Map(await new FileHashes().ofFolder(folder));
}

function flat(config: object): Map<string, string> {
  return new Map(Object.entries(config).map(([key, value]) => [key, JSON.stringify(value)]));
}

function tensorsOf({ inputs, outputs }: ModelSignature): Map<string, string> {
  const text = ({ datatype, shape, batch_axis }: ModelSignature['inputs'][number]): string =>
    `${datatype} [${shape.join(', ')}], batch axis ${batch_axis ?? 'none'}`;
  return new Map([
    ...inputs.map((tensor) => [`input ${tensor.name}`, text(tensor)] as const),
    ...outputs.map((tensor) => [`output ${tensor.name}`, text(tensor)] as const),
  ]);
}

function differences(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): Difference[] {
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((what) => a.get(what) !== b.get(what))
    .map((what) => ({ what, a: a.get(what) ?? null, b: b.get(what) ?? null }));
}

async function answersOf(
  [labA, labB]: ModelLab[],
  a: ModelSource,
  trial: TrialOptions,
): Promise<Pick<VersionDiff, 'outputs' | 'unanswered' | 'items' | 'inputs'>> {
  try {
    const { items, from } = await trialItems(a, (labA as ModelLab).loaded.signature, trial);
    const answers = await Promise.all([(labA as ModelLab).alone(items), (labB as ModelLab).alone(items)]);
    const pairs = (answers[0] ?? []).flatMap((answer, index) => {
      const other = answers[1]?.[index];
      return answer.ok && other?.ok ? [[answer.outputs, other.outputs] as const] : [];
    });
    const failed = answers.flat().find((answer) => !answer.ok);
    const unanswered = failed && !failed.ok ? failed.error.message : null;
    return {
      outputs: pairs.length > 0 ? merged(pairs) : null,
      unanswered,
      items: pairs.length,
      inputs: from,
    };
  } catch (error) {
    const reason = error instanceof RemudaError ? error.message : String(error);
    return { outputs: null, unanswered: reason, items: 0, inputs: null };
  }
}

const TOLERANCE = Tolerance.parse({});

/** The worst of all items, for each output. */
function merged(pairs: readonly (readonly [RawTensor[], RawTensor[]])[]): OutputDifference[] {
  const byName = new Map<string, OutputDifference>();
  for (const [expected, actual] of pairs) {
    for (const one of compareOutputs(expected, actual, TOLERANCE).outputs) {
      const before = byName.get(one.output);
      byName.set(one.output, {
        output: one.output,
        incomparable: before?.incomparable ?? one.incomparable,
        maxAbsError: Math.max(before?.maxAbsError ?? 0, one.maxAbsError),
        maxRelError: Math.max(before?.maxRelError ?? 0, one.maxRelError),
        top1: one.top1 && {
          slices: one.top1.slices + (before?.top1?.slices ?? 0),
          changed: one.top1.changed + (before?.top1?.changed ?? 0),
        },
      });
    }
  }
  return [...byName.values()];
}
