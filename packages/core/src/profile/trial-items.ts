/** What a model is tried with: files that are given, else its golden cases, else inputs made up from its signature. */
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import {
  type HarnessConfig,
  InvalidInputError,
  type ModelSignature,
  parseJson,
  type Tolerance,
} from '@remuda/schemas';
import * as z from 'zod';
import { RemudaError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { readGoldenCases } from '../repository/golden-cases.js';
import type { GivenInput } from '../requests/input-tensor.js';
import { validateInputs } from '../requests/validate-inputs.js';
import type { LabItem } from './lab-messages.js';
import { type AxisSizes, syntheticInputs } from './synthetic-inputs.js';

export interface TrialOptions {
  /** Requests as JSON (`{"inputs": …}`), or image files for a model that takes one image. */
  files?: readonly string[];
  /** Sizes of open axes, for inputs that are made up. */
  dims?: AxisSizes;
  /** How many to make up. Default 16. */
  count?: number;
}

export interface TrialItems {
  items: LabItem[];
  from: 'files' | 'golden' | 'synthetic';
  /** The widest of the golden cases; undefined: there are none. */
  tolerance: Tolerance | undefined;
}

const Body = z.object({
  inputs: z.record(z.string(), z.any()),
  parameters: z.record(z.string(), z.unknown()).default({}),
});

/** @throws RemudaError for a file that does not fit the model, InvalidInputError, golden_mismatch */
export async function trialItems(
  source: ModelSource,
  signature: ModelSignature,
  options: TrialOptions = {},
): Promise<TrialItems> {
  const golden = await readGoldenCases(source.folder, signature);
  const tolerance = golden.reduce<Tolerance | undefined>(
    (widest, { tolerance: { abs, rel } }) => ({
      abs: Math.max(widest?.abs ?? 0, abs),
      rel: Math.max(widest?.rel ?? 0, rel),
    }),
    undefined,
  );
  const { files = [] } = options;
  if (files.length > 0) {
    const items = await Promise.all(files.map((file) => itemOfFile(file, signature)));
    return { items, from: 'files', tolerance };
  }
  if (golden.length > 0) {
    const items = golden.map(({ inputs, parameters }) => ({ inputs, parameters }));
    return { items, from: 'golden', tolerance };
  }
  return { items: syntheticItems(signature, source.config, options), from: 'synthetic', tolerance };
}

export function syntheticItems(
  signature: ModelSignature,
  config: HarnessConfig,
  { count = 16, dims }: TrialOptions = {},
): LabItem[] {
  return Array.from({ length: count }, (_, seed) => ({
    inputs: syntheticInputs(signature, seed, { config, dims }),
    parameters: {},
  }));
}

async function itemOfFile(file: string, signature: ModelSignature): Promise<LabItem> {
  try {
    const bytes = await readFile(file);
    if (extname(file) !== '.json')
      return { inputs: validateInputs([imageOf(bytes, signature)], signature, [file]), parameters: {} };
    const { inputs, parameters } = Body.parse(parseJson(bytes.toString('utf8')));
    const given = Object.entries(inputs).map(
      ([name, value]): GivenInput => ({ name, path: ['inputs', name], value }),
    );
    return { inputs: validateInputs(given, signature, ['inputs']), parameters };
  } catch (error) {
    const reason =
      error instanceof InvalidInputError
        ? error.violations
            .map(({ path, expected, received }) => `${path}: expected ${expected}, received ${received}`)
            .join('; ')
        : String(error instanceof Error ? error.message : error);
    throw new RemudaError('invalid_input', `${file}: ${reason}`, {}, { cause: error });
  }
}

function imageOf(bytes: Buffer, { inputs, model }: ModelSignature): GivenInput {
  const [image, ...others] = inputs.filter((input) => input.kind === 'image');
  if (!image || others.length > 0 || inputs.length > 1)
    throw new RemudaError(
      'invalid_input',
      `${model} does not take one image and nothing else; give a JSON file`,
    );
  return { name: image.name, path: ['inputs', image.name], files: [new Uint8Array(bytes)] };
}
