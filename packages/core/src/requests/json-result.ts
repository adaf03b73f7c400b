/** A result as an InferenceResult in JSON: what GET …/result answers with, and what a webhook carries. */
import {
  encodeTensor,
  encodeTensorBase64,
  type InferenceResult,
  type RawTensor,
  type Tensor,
} from '@remuda/schemas';
import type { RawResult } from './submission.js';

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
