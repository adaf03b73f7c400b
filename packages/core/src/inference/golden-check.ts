/**
 * Runs the golden cases of a version that has just been loaded, by the way that a request takes, and compares. A
 * difference is an error: the version must not take traffic.
 */
import { isDeepStrictEqual } from 'node:util';
import { RemudaError } from '../errors.js';
import type { ItemAnswer } from '../harness/harness.js';
import { type ReadGoldenCase, readGoldenCases } from '../repository/golden-cases.js';
import type { BufferPool } from './buffer-pool.js';
import { compareOutputs, differenceText } from './compare-outputs.js';
import { newItemRun, runItems } from './item-run.js';
import type { LoadedModel } from './loaded-model.js';

export interface GoldenReport {
  /** How many were run: 0 where the version has none, or they were not asked for. */
  cases: number;
  /** The largest absolute error of any element of any case. */
  maxAbsError: number;
}

/** @throws RemudaError golden_mismatch naming the file and what was wrong */
export async function checkGolden(model: LoadedModel, buffers: BufferPool): Promise<GoldenReport> {
  const { modelId, folder } = model.source;
  try {
    const cases = await readGoldenCases(folder, model.signature);
    let maxAbsError = 0;
    for (const golden of cases) maxAbsError = Math.max(maxAbsError, await checkCase(golden, model, buffers));
    return { cases: cases.length, maxAbsError };
  } catch (error) {
    if (!(error instanceof RemudaError)) throw error;
    throw new RemudaError(error.code, `${modelId}: ${error.message}`, error.details, { cause: error });
  }
}

async function checkCase(golden: ReadGoldenCase, model: LoadedModel, buffers: BufferPool): Promise<number> {
  const { outputs, extra } = await answerTo(golden, model, buffers);
  const { file, tolerance } = golden;
  const comparison = compareOutputs(golden.outputs, outputs, tolerance);
  const different = comparison.outputs.filter((output) => !output.ok);
  if (different.length > 0) {
    const text = different.map((output) => differenceText(output, tolerance)).join('; ');
    throw mismatch(file, text, { tolerance, outputs: different });
  }
  for (const [key, expected] of Object.entries(golden.modelExtra ?? {})) {
    const actual = asJson(extra?.[key]);
    if (isDeepStrictEqual(actual, expected)) continue;
    const [want, got] = [brief(expected), brief(actual)];
    throw mismatch(file, `model_extra.${key} is ${got}, expected ${want}`, { key, expected, actual });
  }
  return comparison.maxAbsError;
}

async function answerTo(
  golden: ReadGoldenCase,
  model: LoadedModel,
  buffers: BufferPool,
): Promise<ItemAnswer> {
  const item = newItemRun(golden.inputs, golden.parameters);
  // Nobody's run time-out counts here: a load has its own.
  await runItems([item], golden.file, model, { buffers, send: () => {} });
  const error = item.failed ?? item.runFailed?.error;
  if (error) throw mismatch(golden.file, `the case could not be run: ${error.message}`, { error });
  return item.answer ?? { outputs: [] };
}

function mismatch(file: string, text: string, details: Record<string, unknown>): RemudaError {
  return new RemudaError('golden_mismatch', `${file}: ${text}`, { file, ...details });
}

/** As it would stand in a result. */
function asJson(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

const MOST_CHARACTERS = 200;

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing';
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}
