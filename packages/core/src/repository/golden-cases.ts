/**
 * Reads the golden cases of a model version: `golden/*.json` in its folder, each as schemas/golden-case.ts says, and
 * checks them against the version's signature just as a request would be. A case that cannot be run is a fault of the
 * version, told with the file and the path in it. inference/golden-check.ts runs them.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  decodeTensor,
  GoldenCase,
  type GoldenFile,
  InvalidInputError,
  type ModelSignature,
  parseJson,
  type RawTensor,
  refuse,
  type SignatureTensor,
  type Tolerance,
  type Violation,
  violationsOf,
} from '@remuda/schemas';
import * as z from 'zod';
import { RemudaError } from '../errors.js';
import type { GivenInput } from '../requests/input-tensor.js';
import { validateInputs } from '../requests/validate-inputs.js';

export const GOLDEN_FOLDER = 'golden';

/** A golden case that fits the signature: ready to run and to be compared with. */
export interface ReadGoldenCase {
  /** golden/<name>.json, relative to the version folder. */
  file: string;
  description: string;
  /** In the signature's order. */
  inputs: RawTensor[];
  parameters: Record<string, unknown>;
  outputs: RawTensor[];
  /** null: model_extra is not looked at. */
  modelExtra: Record<string, unknown> | null;
  tolerance: Tolerance;
}

type Signature = Pick<ModelSignature, 'model' | 'inputs' | 'outputs' | 'parameters_schema'>;

/** Faults of one file that a message lists. */
const MOST_FINDINGS = 5;

/**
 * All cases of a version, by file name; none where there is no golden folder.
 * @param folder of the version
 * @throws RemudaError golden_mismatch naming the file and the path of each fault in it
 */
export async function readGoldenCases(folder: string, signature: Signature): Promise<ReadGoldenCase[]> {
  const files = await goldenFiles(folder);
  const cases: ReadGoldenCase[] = [];
  // One after the other: image files of many cases are not all held open at once.
  for (const file of files) cases.push(await readGoldenCase(folder, file, signature));
  return cases;
}

/** golden/<name>.json of a version, by name; hidden files are left out. */
export async function goldenFiles(folder: string): Promise<string[]> {
  const names = await readdir(join(folder, GOLDEN_FOLDER)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names
    .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
    .sort()
    .map((name) => `${GOLDEN_FOLDER}/${name}`);
}

/** One case. @throws RemudaError golden_mismatch */
export async function readGoldenCase(
  folder: string,
  file: string,
  signature: Signature,
): Promise<ReadGoldenCase> {
  try {
    const golden = parseCase(await readFile(join(folder, file), 'utf8'));
    return {
      file,
      description: golden.description ?? '',
      inputs: validateInputs(await givenInputs(folder, golden), signature, ['inputs']),
      parameters: parametersOf(golden, signature),
      outputs: expectedOutputs(golden, signature),
      modelExtra: golden.model_extra ?? null,
      tolerance: golden.tolerance,
    };
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw unfit(file, error.violations);
  }
}

function parseCase(text: string): GoldenCase {
  const body = parseJson(text);
  const parsed = GoldenCase.safeParse(body);
  if (!parsed.success) throw new InvalidInputError(violationsOf(parsed.error, body));
  return parsed.data;
}

function unfit(file: string, violations: readonly Violation[]): RemudaError {
  const shown = violations
    .slice(0, MOST_FINDINGS)
    .map(
      ({ path, expected, received }) => `${path || 'the file'}: expected ${expected}, received ${received}`,
    );
  const rest = violations.length - shown.length;
  const more = rest > 0 ? `; and ${rest} more` : '';
  return new RemudaError('golden_mismatch', `${file}: ${shown.join('; ')}${more}`, {
    file,
    errors: violations,
  });
}

function givenInputs(folder: string, { inputs }: GoldenCase): Promise<GivenInput[]> {
  return Promise.all(
    Object.entries(inputs).map(async ([name, value]) => {
      const path = ['inputs', name];
      if (!isFile(value)) return { name, path, value };
      const bytes = await readFile(join(folder, GOLDEN_FOLDER, value.file)).catch(
        (error: NodeJS.ErrnoException) =>
          refuse([...path, 'file'], 'a file in the golden folder', `"${value.file}" (${error.code})`),
      );
      return { name, path, files: [new Uint8Array(bytes)] };
    }),
  );
}

function isFile(value: GoldenCase['inputs'][string]): value is GoldenFile {
  return typeof value === 'object' && !Array.isArray(value) && 'file' in value;
}

function parametersOf({ parameters }: GoldenCase, { parameters_schema, model }: Signature) {
  if (parameters_schema === null) {
    const [name] = Object.keys(parameters);
    if (name !== undefined) refuse(['parameters', name], `no parameters: ${model} takes none`, `"${name}"`);
    return {};
  }
  const schema = z.fromJSONSchema(parameters_schema as Parameters<typeof z.fromJSONSchema>[0]);
  const parsed = schema.safeParse(parameters);
  if (!parsed.success) throw new InvalidInputError(violationsOf(parsed.error, parameters, ['parameters']));
  return parsed.data as Record<string, unknown>;
}

function expectedOutputs({ outputs }: GoldenCase, signature: Signature): RawTensor[] {
  return Object.entries(outputs).map(([name, tensor]) => {
    const path = ['outputs', name];
    const declared = signature.outputs.find((output) => output.name === name);
    if (!declared) {
      const known = signature.outputs.map((output) => `"${output.name}"`).join(', ');
      return refuse(path, `one of ${known}`, `an unknown output "${name}"`);
    }
    if (tensor.datatype !== declared.datatype)
      refuse([...path, 'datatype'], declared.datatype, tensor.datatype);
    checkShape(tensor.shape, declared, [...path, 'shape']);
    return decodeTensor(name, tensor, path);
  });
}

function checkShape(shape: readonly number[], declared: SignatureTensor, path: PropertyKey[]): void {
  const { shape: dims } = declared;
  const fits =
    shape.length === dims.length && dims.every((dim, i) => typeof dim === 'string' || dim === shape[i]);
  if (!fits) refuse(path, `[${dims.join(', ')}]`, `[${shape.join(', ')}]`);
}
