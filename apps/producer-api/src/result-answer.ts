/** A result in the binary layout of the Open Inference Protocol; in JSON: core/requests/json-result.ts. */
import type { RawResult } from '@remuda/core/requests/submission';
import { encodeBinaryBody, type RawTensor } from '@remuda/schemas';

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
