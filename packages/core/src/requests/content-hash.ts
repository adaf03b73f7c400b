/** What a request holds, as a digest: the same for equal tensors, in whichever form they came. */
import type { Hash } from 'node:crypto';
import type { RawTensor } from '@remuda/schemas';

/** Each head and each run of bytes with its length before it, so that no two lists of items are the same bytes. */
export function hashItem(hash: Hash, id: string | null, tensors: readonly RawTensor[]): void {
  const facts = tensors.map(({ name, datatype, shape, bytes }) => [name, datatype, shape, bytes.byteLength]);
  const head = JSON.stringify([id, facts]);
  hash.update(`${head.length}:${head}`);
  for (const { bytes } of tensors) hash.update(bytes);
}
