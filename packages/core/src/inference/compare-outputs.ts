/**
 * How far outputs are from what was expected, for every datatype. Pure. Used by golden cases, by shadow runs of a
 * canary, and to see whether a batch of N answers as N single rows do.
 *
 *   |actual - expected| <= abs + rel × |expected|
 *
 * Whole numbers and BOOL are held to `abs` alone: a class number of 5000 is not "nearly" 5001. BYTES must be equal.
 * NaN equals NaN, an infinity equals itself; beside anything else they differ, whatever the tolerance.
 */
import {
  type Datatype,
  elementCount,
  fromHalfBits,
  type RawTensor,
  splitBytesElements,
  type Tolerance,
} from '@remuda/schemas';
import { asElements } from '../harness/onnx-types.js';

export interface OutputComparison {
  output: string;
  /** True when every element is within the tolerance. */
  ok: boolean;
  /** Why it could not be compared element by element (missing, another datatype or shape); else null. */
  incomparable: string | null;
  elements: number;
  /** Elements beyond the tolerance, those with a NaN or infinity on one side only included. */
  differing: number;
  /** Index of the first of them, in row-major order. */
  firstDiffering: number | null;
  /** Over the elements that are finite on both sides; 0 for BYTES. */
  maxAbsError: number;
  /** Relative to the expected value; where that is 0, nothing is counted. */
  maxRelError: number;
  /** Slices along the last axis, and how many of them have their highest value elsewhere; null where there is none. */
  top1: { slices: number; changed: number } | null;
}

export interface Comparison {
  /** True when every expected output is there and within the tolerance. */
  ok: boolean;
  /** In the order of the expected outputs. */
  outputs: OutputComparison[];
  maxAbsError: number;
  maxRelError: number;
  /** Slices whose highest value is elsewhere, all outputs together. */
  changedTop1: number;
}

/** Each expected output against the actual one of the same name; further actual outputs are not looked at. */
export function compareOutputs(
  expected: readonly RawTensor[],
  actual: readonly RawTensor[],
  tolerance: Tolerance,
): Comparison {
  const outputs = expected.map((tensor) => {
    const other = actual.find(({ name }) => name === tensor.name);
    return compareOutput(tensor, other, tolerance);
  });
  return {
    ok: outputs.every((output) => output.ok),
    outputs,
    maxAbsError: Math.max(0, ...outputs.map((output) => output.maxAbsError)),
    maxRelError: Math.max(0, ...outputs.map((output) => output.maxRelError)),
    changedTop1: outputs.reduce((sum, { top1 }) => sum + (top1?.changed ?? 0), 0),
  };
}

/** One sentence about an output that is not as expected; names the worst error and the tolerance. */
export function differenceText(comparison: OutputComparison, { abs, rel }: Tolerance): string {
  const { output, incomparable, elements, differing, firstDiffering, maxAbsError, maxRelError } = comparison;
  if (incomparable !== null) return `output "${output}" ${incomparable}`;
  return `output "${output}": ${differing} of ${elements} elements differ, the first at ${firstDiffering}; max abs error ${short(maxAbsError)}, max rel error ${short(maxRelError)}, allowed abs ${abs} + rel ${rel} × |expected|`;
}

function short(value: number): string {
  return String(Number(value.toPrecision(4)));
}

function compareOutput(
  expected: RawTensor,
  actual: RawTensor | undefined,
  tolerance: Tolerance,
): OutputComparison {
  const wrong = incomparability(expected, actual);
  const elements = elementCount(expected.shape);
  const blank: OutputComparison = {
    output: expected.name,
    ok: wrong === null,
    incomparable: wrong,
    elements,
    differing: wrong === null ? 0 : elements,
    firstDiffering: null,
    maxAbsError: 0,
    maxRelError: 0,
    top1: null,
  };
  if (wrong !== null || !actual) return blank;
  if (expected.datatype === 'BYTES') return { ...blank, ...compareBytes(expected, actual) };
  const [wanted, got] = [valuesOf(expected), valuesOf(actual)];
  const held = isFloat(expected.datatype) ? tolerance : { abs: tolerance.abs, rel: 0 };
  const top1 = compareTop1(wanted, got, expected.shape);
  return { ...blank, ...compareValues(wanted, got, held), top1 };
}

function incomparability(expected: RawTensor, actual: RawTensor | undefined): string | null {
  if (!actual) return 'is missing';
  if (actual.datatype !== expected.datatype) {
    return `is ${actual.datatype}, expected ${expected.datatype}`;
  }
  if (actual.shape.join() !== expected.shape.join()) {
    return `has shape [${actual.shape.join(', ')}], expected [${expected.shape.join(', ')}]`;
  }
  return null;
}

function isFloat(datatype: Datatype): boolean {
  return datatype === 'FP16' || datatype === 'FP32' || datatype === 'FP64';
}

type Values = ArrayLike<number> | ArrayLike<bigint>;

function valuesOf({ datatype, bytes }: RawTensor): Values {
  const elements = asElements(datatype as Exclude<Datatype, 'BYTES'>, bytes);
  return datatype === 'FP16' ? Float64Array.from(elements as Uint16Array, fromHalfBits) : elements;
}

type Differences = Pick<
  OutputComparison,
  'ok' | 'differing' | 'firstDiffering' | 'maxAbsError' | 'maxRelError'
>;

function compareValues(wanted: Values, got: Values, { abs, rel }: Tolerance): Differences {
  let differing = 0;
  let firstDiffering: number | null = null;
  let maxAbsError = 0;
  let maxRelError = 0;
  for (let i = 0; i < wanted.length; i++) {
    const [a, b] = [got[i] as number | bigint, wanted[i] as number | bigint];
    if (Object.is(a, b) || a === b) continue;
    const error = distance(a, b);
    const size = Math.abs(Number(b));
    if (Number.isFinite(error)) {
      if (error > maxAbsError) maxAbsError = error;
      if (size > 0 && error / size > maxRelError) maxRelError = error / size;
      if (error <= abs + rel * size) continue;
    }
    differing++;
    firstDiffering ??= i;
  }
  return { ok: differing === 0, differing, firstDiffering, maxAbsError, maxRelError };
}

/** NaN or Infinity where one side is not finite. 64-bit integers are subtracted before digits are lost. */
function distance(a: number | bigint, b: number | bigint): number {
  if (typeof a === 'bigint' && typeof b === 'bigint') return Number(a > b ? a - b : b - a);
  return Math.abs(Number(a) - Number(b));
}

function compareBytes(expected: RawTensor, actual: RawTensor): Differences {
  const [wanted, got] = [splitBytesElements(expected.bytes), splitBytesElements(actual.bytes)];
  const differs = wanted.map((element, i) => Buffer.compare(element, got[i] as Uint8Array) !== 0);
  const differing = differs.filter(Boolean).length;
  const firstDiffering = differing > 0 ? differs.indexOf(true) : null;
  return { ok: differing === 0, differing, firstDiffering, maxAbsError: 0, maxRelError: 0 };
}

/** null for scalars and for a last axis of one: there the highest value cannot be elsewhere. */
function compareTop1(wanted: Values, got: Values, shape: readonly number[]): OutputComparison['top1'] {
  const width = shape.at(-1) ?? 1;
  if (width < 2 || wanted.length === 0) return null;
  let changed = 0;
  for (let start = 0; start < wanted.length; start += width) {
    if (highest(wanted, start, width) !== highest(got, start, width)) changed++;
  }
  return { slices: wanted.length / width, changed };
}

/** Position of the first highest value; NaN is never the highest. */
function highest(values: Values, start: number, width: number): number {
  let best = -1;
  for (let i = 0; i < width; i++) {
    const value = values[start + i] as number | bigint;
    if (Number.isNaN(value)) continue;
    if (best < 0 || value > (values[start + best] as number | bigint)) best = i;
  }
  return best;
}
