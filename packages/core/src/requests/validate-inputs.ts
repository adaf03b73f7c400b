/**
 * Checks the inputs of a request against the model's signature and brings them into its order: names, rows, sizes that
 * must agree; each input by itself in input-tensor.ts. What comes out can be run; what fails here is never stored.
 */
import {
  dotted,
  InvalidInputError,
  LIMITS,
  type ModelSignature,
  type RawTensor,
  refuse,
  type SignatureTensor,
  type Violation,
} from '@remuda/schemas';
import { nearNames } from '../repository/near-names.js';
import { type GivenInput, inputTensor, isTensor, wanted } from './input-tensor.js';
import type { SubmittedItem } from './submission.js';

type Path = readonly PropertyKey[];

export interface GivenItem {
  id: string | null;
  inputs: readonly GivenInput[];
  /** The inputs as they came, where that is a frame already; it holds nothing else that a reader would take. */
  frame?: Buffer;
  /** Where the inputs of this item stand: inputs, or items[3].inputs. */
  path: Path;
}

type Signature = Pick<ModelSignature, 'inputs'>;

/** Findings that an answer lists. */
const MOST_FINDINGS = 20;

/** All items of a request. @throws InvalidInputError with the findings of every item, at most twenty */
export function validateItems(items: readonly GivenItem[], signature: Signature): SubmittedItem[] {
  const findings: Violation[] = [];
  const submitted: SubmittedItem[] = [];
  let rows = 0;
  for (const { id, inputs, frame, path } of items) {
    if (findings.length >= MOST_FINDINGS) break;
    collect(findings, () => {
      const tensors = validateInputs(inputs, signature, path);
      rows += rowsOf(tensors, signature);
      submitted.push({ id, tensors, frame: frame && standInOrder(inputs, signature) ? frame : undefined });
    });
  }
  if (findings.length > 0) throw new InvalidInputError(findings.slice(0, MOST_FINDINGS));
  if (rows > LIMITS.rows) {
    // items[0].inputs without its last two parts: where the items stand.
    const path = (items[0] as GivenItem).path.slice(0, -2);
    refuse(path, `at most ${LIMITS.rows} rows in all items of a request`, `${rows} rows`);
  }
  return submitted;
}

/** The inputs of one item as tensors in the signature's order. @throws InvalidInputError with every finding */
export function validateInputs(given: readonly GivenInput[], signature: Signature, path: Path): RawTensor[] {
  const ordered = inOrder(given, signature, path);
  const findings: Violation[] = [];
  const tensors: RawTensor[] = [];
  for (let i = 0; i < ordered.length; i++) {
    const input = ordered[i] as GivenInput;
    collect(findings, () => tensors.push(inputTensor(input, signature.inputs[i] as SignatureTensor)));
  }
  if (findings.length === 0) findAgreement(ordered, tensors, signature, findings);
  if (findings.length > 0) throw new InvalidInputError(findings.slice(0, MOST_FINDINGS));
  return tensors;
}

/** Rows of an item whose tensors were checked; 1 for a model without batch axes. */
export function rowsOf(tensors: readonly RawTensor[], { inputs }: Signature): number {
  for (let i = 0; i < inputs.length; i++) {
    const axis = (inputs[i] as SignatureTensor).batch_axis;
    if (axis !== null) return (tensors[i] as RawTensor).shape[axis] as number;
  }
  return 1;
}

function collect(findings: Violation[], step: () => void): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    findings.push(...error.violations);
  }
}

/** The given inputs in the signature's order. @throws for unknown, missing and doubled names, all at once */
function inOrder(given: readonly GivenInput[], { inputs }: Signature, path: Path): GivenInput[] {
  const ordered = inputs.map(({ name }) => given.find((candidate) => candidate.name === name));
  if (given.length === inputs.length && !ordered.includes(undefined)) return ordered as GivenInput[];
  const findings: Violation[] = [];
  const seen = new Set<string>();
  for (const { name, path: at } of given) {
    if (!inputs.some((input) => input.name === name)) findings.push(unknownName(name, at, inputs));
    else if (seen.has(name)) {
      findings.push({ path: dotted(at), expected: 'each input once', received: `"${name}" a second time` });
    }
    seen.add(name);
  }
  for (const input of inputs) {
    if (seen.has(input.name)) continue;
    findings.push({ path: dotted([...path, input.name]), expected: wanted(input), received: 'nothing' });
  }
  throw new InvalidInputError(findings.slice(0, MOST_FINDINGS));
}

/** Stored tensors stand in the signature's order. */
function standInOrder(given: readonly GivenInput[], { inputs }: Signature): boolean {
  return given.every(({ name }, index) => name === inputs[index]?.name);
}

function unknownName(name: string, path: Path, inputs: readonly SignatureTensor[]): Violation {
  const names = inputs.map((input) => input.name);
  const near = nearNames(name, names).map((candidate) => `"${candidate}"`);
  const known = names.slice(0, MOST_FINDINGS).map((candidate) => `"${candidate}"`);
  const hint = near.length > 0 ? ` (did you mean ${near.join(' or ')}?)` : '';
  const expected = `${known.length > 1 ? 'one of ' : ''}${known.join(', ')}${hint}`;
  return { path: dotted(path), expected, received: `an unknown input "${name}"` };
}

/** Where a size was first seen, for the axes that must agree. */
interface Seen {
  size: number;
  name: string;
}

/** Cannot be the name of an axis. */
const ROWS = '\0rows';

/** All batch axes have the same rows, and axes of one symbolic name have the same size. */
function findAgreement(
  given: readonly GivenInput[],
  tensors: readonly RawTensor[],
  { inputs }: Signature,
  findings: Violation[],
): void {
  const seen = new Map<string, Seen>();
  inputs.forEach(({ name, shape, batch_axis }, index) => {
    for (let axis = 0; axis < shape.length; axis++) {
      const symbol = axis === batch_axis ? ROWS : shape[axis];
      if (typeof symbol !== 'string' || symbol === '') continue;
      const size = (tensors[index] as RawTensor).shape[axis] as number;
      const first = seen.get(symbol);
      if (!first) seen.set(symbol, { size, name });
      else if (first.size !== size) {
        findings.push(disagreement(given[index] as GivenInput, axis, symbol, size, first));
      }
    }
  });
}

function disagreement(given: GivenInput, axis: number, symbol: string, size: number, first: Seen): Violation {
  const declared = 'tensor' in given || ('value' in given && isTensor(given.value));
  const path = dotted(declared ? [...given.path, 'shape', axis] : given.path);
  if (symbol === ROWS) {
    return { path, expected: `${first.size} rows, as "${first.name}" has`, received: `${size} rows` };
  }
  const expected = `${first.size}, as axis "${symbol}" of "${first.name}" has`;
  return { path, expected, received: `${size} (axis ${axis})` };
}
