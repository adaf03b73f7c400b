/**
 * Whether requests for one model or version can be run by another: what the second takes must be what the first takes.
 * Pure. For fallbacks and splits.
 */
import type { ModelSignature, SignatureTensor } from '@remuda/schemas';

/** Why inputs made for `from` cannot be given to `to`; empty: they can. */
export function inputDifferences(from: ModelSignature, to: ModelSignature): string[] {
  return differences('input', from.inputs, to.inputs);
}

/** Why two versions cannot share requests whose caller does not know which one answers; empty: they can. */
export function versionDifferences(a: ModelSignature, b: ModelSignature): string[] {
  const found = [
    ...differences('input', a.inputs, b.inputs),
    ...differences('input', b.inputs, a.inputs),
    ...differences('output', a.outputs, b.outputs),
    ...differences('output', b.outputs, a.outputs),
  ];
  return [...new Set(found)];
}

function differences(
  kind: 'input' | 'output',
  from: readonly SignatureTensor[],
  to: readonly SignatureTensor[],
): string[] {
  const missing = to.filter(({ name }) => !from.some((tensor) => tensor.name === name));
  return [
    ...missing.map(({ name }) => `${kind} ${name} is not on both sides`),
    ...from.flatMap((tensor) => {
      const other = to.find(({ name }) => name === tensor.name);
      if (!other) return [`${kind} ${tensor.name} is not on both sides`];
      const what = differenceOf(tensor, other);
      return what === undefined ? [] : [`${kind} ${tensor.name}: ${what}`];
    }),
  ];
}

function differenceOf(from: SignatureTensor, to: SignatureTensor): string | undefined {
  if (from.datatype !== to.datatype) return both('datatype', from.datatype, to.datatype);
  if (from.kind !== to.kind) return both('kind', from.kind, to.kind);
  if (from.batch_axis !== to.batch_axis) return both('batch axis', axis(from), axis(to));
  if (from.shape.length !== to.shape.length) return both('shape', shape(from), shape(to));
  // A named axis takes any length; a fixed one only its own.
  const fits = to.shape.every((size, at) => typeof size === 'string' || size === from.shape[at]);
  return fits ? undefined : both('shape', shape(from), shape(to));
}

function both(what: string, a: string, b: string): string {
  // In one order, so that the same difference found from both sides is told once.
  const [first, second] = [a, b].sort();
  return `${what} ${first} and ${second}`;
}

const axis = ({ batch_axis }: SignatureTensor): string => (batch_axis === null ? 'none' : String(batch_axis));
const shape = (tensor: SignatureTensor): string => `[${tensor.shape.join(', ')}]`;
