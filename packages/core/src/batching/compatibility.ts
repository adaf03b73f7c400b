/**
 * Which requests may share a run: those with equal keys. Into the key goes everything that one run holds once for all
 * its rows: the version, datatypes, the sizes of all axes but the rows' (after padding to the bucket), the bytes of
 * inputs without a batch axis, and the parameters. Pure; a few microseconds for a plain tensor.
 */
import { hash } from 'node:crypto';
import type { PaddingRule, RawTensor, SignatureTensor } from '@remuda/schemas';
import { canonicalJson } from '../canonical-json.js';
import { paddedShape } from './padding.js';

export interface CompatibilityFacts {
  /** A ModelSignature, or the model's own tensors behind its hooks. */
  signature: { inputs: readonly SignatureTensor[]; padding: readonly PaddingRule[] };
  tensors: readonly RawTensor[];
  parameters: Record<string, unknown> | undefined;
  version: string;
}

/** A short text; equal for requests that may share a run, different for any others. */
export function compatibilityKey({ signature, tensors, parameters, version }: CompatibilityFacts): string {
  let facts = version;
  for (const input of signature.inputs) {
    const tensor = tensors.find((candidate) => candidate.name === input.name);
    facts += `\n${input.name}\t`;
    if (tensor) facts += tensorFacts(tensor, input.batch_axis, signature);
  }
  if (parameters && Object.keys(parameters).length > 0) facts += `\n${canonicalJson(parameters)}`;
  return hash('sha256', facts, 'base64url' as 'base64').slice(0, 22);
}

function tensorFacts(
  tensor: RawTensor,
  batchAxis: number | null,
  signature: CompatibilityFacts['signature'],
): string {
  const shape = paddedShape(tensor.name, tensor.shape, signature.padding);
  if (batchAxis === null) return `${tensor.datatype}:${shape.join()}:${hash('sha256', tensor.bytes, 'hex')}`;
  let facts = tensor.datatype as string;
  for (let axis = 0; axis < shape.length; axis++) facts += axis === batchAxis ? ',*' : `,${shape[axis]}`;
  return facts;
}
