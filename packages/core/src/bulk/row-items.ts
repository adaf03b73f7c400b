/**
 * The rows of a chunk as items that run: as many rows an item as a batch holds where rows lie one behind the other along
 * the first axis, else a row an item. An item that fails is cut in halves, so that a bad row fails alone.
 */
import { ELEMENT_BYTES, joinBytesElements, type RawTensor, splitBytesElements } from '@remuda/schemas';
import type { LoadedModel } from '../inference/loaded-model.js';

/** Consecutive rows whose inputs lie in tensors with the rows along the first axis. */
export interface InputRows {
  /** In the chunk, from 0. */
  from: number;
  rows: number;
  tensors: RawTensor[];
  parameters?: Record<string, unknown>;
}

/** Whether rows can be run as one item: hooks are about one item each, and other axes would have to be cut apart. */
export function mayShareItem({ hooks, batch, signature }: LoadedModel): boolean {
  if (hooks.preprocess || hooks.postprocess) return false;
  return [...batch.inputs, ...batch.outputs, ...signature.outputs].every(
    ({ batch_axis }) => batch_axis === 0,
  );
}

/** Cuts rows into batches of at most `most` rows, each a list of items of at most `each` rows. In order. */
export function batchesOf(runs: readonly InputRows[], most: number, each: number): InputRows[][] {
  const batches: InputRows[][] = [];
  let open: InputRows[] = [];
  let used = 0;
  for (const run of runs) {
    for (let at = 0; at < run.rows; ) {
      const count = Math.min(each, most - used, run.rows - at);
      open.push(partOf(run, at, at + count));
      used += count;
      at += count;
      if (used < most) continue;
      batches.push(open);
      open = [];
      used = 0;
    }
  }
  if (open.length > 0) batches.push(open);
  return batches;
}

/** Both halves; an item of one row is no more to be cut. */
export function halvesOf(items: readonly InputRows[]): [InputRows[], InputRows[]] {
  const [only] = items;
  if (items.length === 1 && only) {
    const middle = Math.ceil(only.rows / 2);
    return [[partOf(only, 0, middle)], [partOf(only, middle, only.rows)]];
  }
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}

/** Rows [from, to) of it. */
export function partOf(run: InputRows, from: number, to: number): InputRows {
  if (from === 0 && to === run.rows) return run;
  return {
    ...run,
    from: run.from + from,
    rows: to - from,
    tensors: run.tensors.map((tensor) => cut(tensor, run.rows, from, to)),
  };
}

/** Rows [from, to) along the first axis; a view but for texts. */
function cut(tensor: RawTensor, rows: number, from: number, to: number): RawTensor {
  const shape = [to - from, ...tensor.shape.slice(1)];
  if (tensor.datatype === 'BYTES') {
    const elements = splitBytesElements(tensor.bytes);
    const each = elements.length / rows;
    return { ...tensor, shape, bytes: joinBytesElements(elements.slice(from * each, to * each)) };
  }
  const each = (tensor.bytes.byteLength / rows) | 0;
  if (each % ELEMENT_BYTES[tensor.datatype] !== 0)
    throw new Error(`"${tensor.name}" does not hold ${rows} rows of one size`);
  return { ...tensor, shape, bytes: tensor.bytes.subarray(from * each, to * each) };
}
