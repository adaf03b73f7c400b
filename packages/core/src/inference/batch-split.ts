/**
 * From the outputs of runs back to the outputs of items: rows cut out along each output's batch axis, pieces of an
 * item joined, padded axes cut back to their true length. Views wherever the rows lie together. Pure.
 */
import {
  ELEMENT_BYTES,
  elementCount,
  joinBytesElements,
  type RawTensor,
  type SignatureTensor,
  splitBytesElements,
} from '@remuda/schemas';
import { restoredLength } from '../batching/padding.js';
import type { BatchModel, Piece } from './batch-assembly.js';
import { byteMover, copyBox, cutBox, elementMover } from './block-copy.js';

/**
 * The outputs of each piece of one run, in the order of the pieces. An output without a batch axis goes to each.
 * The number of rows was checked by the harness.
 */
export function splitOutputs(
  outputs: readonly RawTensor[],
  pieces: readonly Piece[],
  model: BatchModel,
): RawTensor[][] {
  const only = pieces.length === 1;
  let row = 0;
  return pieces.map(({ from, to }) => {
    const start = row;
    row += to - from;
    if (only) return [...outputs];
    return outputs.map((output) => cutRows(output, axisOf(output, model), start, to - from));
  });
}

function axisOf(output: RawTensor, { outputs }: BatchModel): number | null {
  return (outputs.find((candidate) => candidate.name === output.name) as SignatureTensor).batch_axis;
}

function cutRows(tensor: RawTensor, axis: number | null, from: number, count: number): RawTensor {
  return axis === null ? tensor : cutAxis(tensor, axis, from, count);
}

function cutAxis(tensor: RawTensor, axis: number, from: number, count: number): RawTensor {
  const origin = tensor.shape.map((_, at) => (at === axis ? from : 0));
  const shape = tensor.shape.map((dim, at) => (at === axis ? count : dim));
  return {
    ...tensor,
    shape,
    bytes: cutBox(tensor.datatype, tensor.bytes, { shape: tensor.shape, origin }, shape),
  };
}

/** Joins the outputs of an item's pieces, in order of their rows. */
export function joinPieces(pieces: readonly RawTensor[][], model: BatchModel): RawTensor[] {
  const [first, ...rest] = pieces as [RawTensor[], ...RawTensor[][]];
  if (rest.length === 0) return first;
  return first.map((output, index) => {
    const axis = axisOf(output, model);
    return axis === null
      ? output
      : joinRows(
          pieces.map((piece) => piece[index] as RawTensor),
          axis,
        );
  });
}

function joinRows(parts: readonly RawTensor[], axis: number): RawTensor {
  const { name, datatype, shape: firstShape } = parts[0] as RawTensor;
  const rows = parts.reduce((sum, part) => sum + (part.shape[axis] as number), 0);
  const shape = firstShape.map((dim, at) => (at === axis ? rows : dim));
  const width = ELEMENT_BYTES[datatype];
  const elements: Uint8Array[] = [];
  const bytes = new Uint8Array(width * elementCount(shape));
  let row = 0;
  for (const part of parts) {
    const origin = shape.map((_, at) => (at === axis ? row : 0));
    const move =
      width === 0
        ? elementMover(splitBytesElements(part.bytes), elements)
        : byteMover(part.bytes, bytes, width);
    copyBox({ shape: part.shape, origin: shape.map(() => 0) }, { shape, origin }, part.shape, move);
    row += part.shape[axis] as number;
  }
  return { name, datatype, shape, bytes: width === 0 ? joinBytesElements(elements) : bytes };
}

/** Cuts padded axes of the outputs back to what the item's own lengths give, where the rules say so. */
export function restoreLengths(
  outputs: RawTensor[],
  inputs: readonly RawTensor[],
  model: BatchModel,
): RawTensor[] {
  let restored = outputs;
  for (const rule of model.padding) {
    const length = inputs.find((input) => input.name === rule.input)?.shape[rule.axis];
    if (length === undefined) continue;
    for (const { output, axis, ratio } of rule.restore) {
      restored = restored.map((tensor) =>
        tensor.name === output ? cutTo(tensor, axis, restoredLength(length, ratio)) : tensor,
      );
    }
  }
  return restored;
}

function cutTo(tensor: RawTensor, axis: number, length: number): RawTensor {
  const given = tensor.shape[axis];
  return given === undefined || given <= length ? tensor : cutAxis(tensor, axis, 0, length);
}
