/**
 * Whether a model version is fit to serve, found out by trying: it is loaded, warmed and inspected in a process of its
 * own, its golden cases are run, and a batch is compared with single rows. Each finding says what to do.
 */
import type { ModelSignature, SignatureTensor } from '@remuda/schemas';
import { Tolerance } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { ModelLab } from '../profile/model-lab.js';
import { syntheticItems, type TrialOptions, trialItems } from '../profile/trial-items.js';
import { type BatchVerdict, checkBatching } from './batch-check.js';
import { type Finding, fail, ok, warn } from './finding.js';

export interface Validation {
  findings: Finding[];
  /** null: it could not be loaded. */
  signature: ModelSignature | null;
  batching: BatchVerdict;
}

const UNKNOWN: BatchVerdict = { kind: 'unknown', reason: 'the model could not be loaded' };
/** Golden cases are few; made-up rows of the same shape fill the batch. */
const BATCH_ROWS = 8;

export async function validateVersion(source: ModelSource, trial: TrialOptions = {}): Promise<Validation> {
  const findings: Finding[] = [];
  const lab = await open(source, findings);
  if (!lab) return { findings, signature: null, batching: UNKNOWN };
  try {
    const { signature, provider } = lab.loaded;
    findings.splice(
      0,
      0,
      ok('load', `${source.modelId} loads and warms up, run by ${provider}`),
      ...tensorFindings(signature),
    );
    const batching = await batchVerdict(lab, source, trial);
    findings.push(batchFinding(batching, source));
    return { findings, signature, batching };
  } finally {
    lab.close();
  }
}

/** Pushes what it finds of golden cases, or why the version cannot be loaded. */
async function open(source: ModelSource, findings: Finding[]): Promise<ModelLab | undefined> {
  try {
    const lab = await ModelLab.open(source, { verify: true });
    findings.push(goldenFinding(lab.loaded.goldenCases, lab.loaded.goldenMaxAbsError));
    return lab;
  } catch (error) {
    if (!isGoldenMismatch(error)) {
      findings.push(fail('load', messageOf(error), loadRemedy(error)));
      return undefined;
    }
    findings.push(
      fail(
        'golden',
        messageOf(error),
        'Correct the model, or the case where the model is right; docs/models.md has the form.',
      ),
    );
    // What else is to be said of it can be found out all the same.
    return ModelLab.open(source).catch(() => undefined);
  }
}

function isGoldenMismatch(error: unknown): boolean {
  return error instanceof RemudaError && error.code === 'golden_mismatch';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function loadRemedy(error: unknown): string {
  const crashed = error instanceof RemudaError && error.code === 'runner_crashed';
  return crashed
    ? 'The file ends the process that loads it: export it anew, or for another opset.'
    : 'Correct the file or model.yaml; the form of model.yaml: docs/models.md.';
}

function goldenFinding(cases: number, maxAbsError: number): Finding {
  if (cases > 0) return ok('golden', `${cases} golden cases hold, max abs error ${short(maxAbsError)}`);
  return warn(
    'golden',
    'no golden cases: nothing says that its answers are right',
    'Put inputs with their right outputs into golden/<name>.json of the version folder.',
  );
}

function tensorFindings({ inputs, outputs }: ModelSignature): Finding[] {
  return [ok('takes', inputs.map(tensorText).join('; ')), ok('gives', outputs.map(tensorText).join('; '))];
}

function tensorText({ name, datatype, shape, batch_axis, kind }: SignatureTensor): string {
  const what = kind === 'image' ? 'image files' : datatype;
  const axis = batch_axis === null ? 'no batch axis' : `batch axis ${batch_axis}`;
  return `${name}: ${what} [${shape.join(', ')}], ${axis}`;
}

async function batchVerdict(lab: ModelLab, source: ModelSource, trial: TrialOptions): Promise<BatchVerdict> {
  const { signature } = lab.loaded;
  try {
    const given = await trialItems(source, signature, { ...trial, count: BATCH_ROWS });
    const tolerance = given.tolerance ?? Tolerance.parse({});
    const verdict = await checkBatching(lab, signature, given.items, tolerance);
    // Too few golden cases that could share a run: made-up rows say as much about mixing.
    if (verdict.kind !== 'unknown' || given.from === 'synthetic') return verdict;
    const made = syntheticItems(signature, source.config, { ...trial, count: BATCH_ROWS });
    return await checkBatching(lab, signature, made, tolerance);
  } catch (error) {
    return { kind: 'unknown', reason: messageOf(error) };
  }
}

function batchFinding(verdict: BatchVerdict, { config }: ModelSource): Finding {
  const check = 'batching';
  switch (verdict.kind) {
    case 'same': {
      const errors = `max abs error ${short(verdict.maxAbsError)}, max rel error ${short(verdict.maxRelError)}`;
      return ok(check, `may be batched: ${verdict.rows} rows in one run answer as alone (${errors})`);
    }
    case 'no_batch_axis':
      return ok(check, 'no input has a batch axis: rows run one by one');
    case 'differs': {
      const found = `must not be batched: ${verdict.rows} rows in one run do not answer as alone: ${verdict.reason}`;
      if (config.max_batch_size === 1) return ok(check, `${found}; max_batch_size is 1, so it is not`);
      return fail(check, found, 'Set max_batch_size: 1, or export the model in inference mode.');
    }
    case 'not_deterministic':
      return warn(
        check,
        `the same input gives different answers: ${verdict.reason}`,
        'Remove what is random from the graph (dropout, sampling), or set max_batch_size: 1.',
      );
    case 'unknown':
      return warn(
        check,
        `whether it may be batched could not be found out: ${verdict.reason}`,
        'Add two golden cases of one shape, or give sizes of open axes with --dims and inputs with --inputs.',
      );
  }
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}
