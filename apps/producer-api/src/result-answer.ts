/** A result as it is sent: as an InferenceResult in JSON, or in the binary layout of the Open Inference Protocol. */
import type { RawResult } from '@remuda/core/requests/submission';
import {
  encodeBinaryBody,
  encodeTensor,
  encodeTensorBase64,
  type InferenceResult,
  type RawTensor,
  type Tensor,
} from '@remuda/schemas';

type RawItem = RawResult['items'][number];

export type TensorForm = 'data' | 'b64';

export function jsonResult(raw: RawResult, form: TensorForm): InferenceResult {
  const { hasItems, items, request_id, model, version, digest, status, ...rest } = raw;
  const encode = form === 'b64' ? encodeTensorBase64 : encodeTensor;
  const outputs = (item: RawItem | undefined) => (item?.outputs ? byName(item.outputs, encode) : null);
  return {
    request_id,
    model,
    version,
    digest,
    status,
    outputs: hasItems ? null : outputs(items[0]),
    items: hasItems ? items.map((item) => ({ ...item, outputs: outputs(item) })) : null,
    ...rest,
  };
}

function byName(
  tensors: readonly RawTensor[],
  encode: (tensor: RawTensor) => Tensor,
): Record<string, Tensor> {
  return Object.fromEntries(tensors.map((tensor) => [tensor.name, encode(tensor)]));
}

/**
 * The header is the whole result, its `outputs` an array of tensors with their binary_data_size. Where the result has
 * items, each has such an array and their bytes follow in the order of the items.
 */
export function binaryResult(raw: RawResult): { body: Buffer; headerLength: number } {
  const { hasItems, items, ...rest } = raw;
  if (!hasItems) return encodeBinaryBody('outputs', items[0]?.outputs ?? [], { ...rest, items: null });
  const described = items.map((item) => ({ ...item, outputs: item.outputs?.map(describe) ?? null }));
  const header = Buffer.from(JSON.stringify({ ...rest, outputs: null, items: described }));
  const bytes = items.flatMap((item) => item.outputs?.map((tensor) => tensor.bytes) ?? []);
  return { body: Buffer.concat([header, ...bytes]), headerLength: header.byteLength };
}

function describe({ name, datatype, shape, bytes }: RawTensor) {
  return { name, datatype, shape, parameters: { binary_data_size: bytes.byteLength } };
}
