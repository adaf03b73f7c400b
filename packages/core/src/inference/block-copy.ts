/**
 * Copies a box of elements from one row-major tensor into another: the one movement behind assembling, slicing,
 * padding, splitting, joining and restoring, along any axis. Pure.
 */
import {
  type Datatype,
  ELEMENT_BYTES,
  elementCount,
  joinBytesElements,
  splitBytesElements,
} from '@remuda/schemas';

/** A box within a tensor: the tensor's shape and where the box begins. */
export interface Place {
  shape: readonly number[];
  origin: readonly number[];
}

/** Moves `count` neighbouring elements from index `from` to index `to`. */
export type MoveElements = (from: number, to: number, count: number) => void;

/** Calls `move` for each contiguous run of a box of size `extent`, in order. */
export function copyBox(source: Place, target: Place, extent: readonly number[], move: MoveElements): void {
  if (elementCount(extent) === 0) return;
  const rank = extent.length;
  // From the inside out, axes that are whole in both tensors are one run; the first that is not ends it.
  let split = rank;
  let run = 1;
  while (split > 0) {
    const axis = split - 1;
    run *= extent[axis] as number;
    split = axis;
    if (extent[axis] !== source.shape[axis] || extent[axis] !== target.shape[axis]) break;
  }
  const sourceStrides = stridesOf(source.shape);
  const targetStrides = stridesOf(target.shape);
  let from = offsetOf(source.origin, sourceStrides);
  let to = offsetOf(target.origin, targetStrides);
  if (split === 0) {
    move(from, to, run);
    return;
  }
  const position = new Array<number>(split).fill(0);
  for (;;) {
    move(from, to, run);
    let axis = split - 1;
    for (; axis >= 0; axis--) {
      from += sourceStrides[axis] as number;
      to += targetStrides[axis] as number;
      const next = (position[axis] as number) + 1;
      if (next < (extent[axis] as number)) {
        position[axis] = next;
        break;
      }
      from -= next * (sourceStrides[axis] as number);
      to -= next * (targetStrides[axis] as number);
      position[axis] = 0;
    }
    if (axis < 0) return;
  }
}

/** Moves runs of fixed-width elements between byte arrays. */
export function byteMover(source: Uint8Array, target: Uint8Array, width: number): MoveElements {
  return (from, to, count) => {
    target.set(source.subarray(from * width, (from + count) * width), to * width);
  };
}

/** Moves runs between lists of elements (BYTES). */
export function elementMover(source: readonly Uint8Array[], target: Uint8Array[]): MoveElements {
  return (from, to, count) => {
    for (let i = 0; i < count; i++) target[to + i] = source[from + i] as Uint8Array;
  };
}

/** A box cut out of a tensor's bytes, as bytes: a view where it is contiguous and has fixed-width elements. */
export function cutBox(
  datatype: Datatype,
  bytes: Uint8Array,
  place: Place,
  extent: readonly number[],
): Uint8Array {
  const width = ELEMENT_BYTES[datatype];
  const target: Place = { shape: extent, origin: extent.map(() => 0) };
  if (width === 0) {
    const elements: Uint8Array[] = [];
    copyBox(place, target, extent, elementMover(splitBytesElements(bytes), elements));
    return joinBytesElements(elements);
  }
  if (isContiguous(place, extent)) {
    const start = offsetOf(place.origin, stridesOf(place.shape)) * width;
    return bytes.subarray(start, start + elementCount(extent) * width);
  }
  const cut = new Uint8Array(elementCount(extent) * width);
  copyBox(place, target, extent, byteMover(bytes, cut, width));
  return cut;
}

/** True when the box is one run of its tensor: only axes of size one before the first that is cut. */
function isContiguous({ shape }: Place, extent: readonly number[]): boolean {
  let axis = extent.length - 1;
  while (axis >= 0 && extent[axis] === shape[axis]) axis--;
  for (axis -= 1; axis >= 0; axis--) if (extent[axis] !== 1) return false;
  return true;
}

function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis] as number;
  }
  return strides;
}

function offsetOf(origin: readonly number[], strides: readonly number[]): number {
  let offset = 0;
  for (let axis = 0; axis < origin.length; axis++)
    offset += (origin[axis] as number) * (strides[axis] as number);
  return offset;
}
