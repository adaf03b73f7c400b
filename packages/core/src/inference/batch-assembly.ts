/**
 * From the tensors of several items to the tensors of one run. Pure but for the buffers, which come from a pool and
 * belong to the caller. Items are taken in pieces: one with more rows than a run may hold is spread over several.
 * The way back is batch-split.ts.
 */
import {
  type Datatype,
  ELEMENT_BYTES,
  elementCount,
  joinBytesElements,
  type PaddingRule,
  type RawTensor,
  type SignatureTensor,
  splitBytesElements,
  toHalfBits,
} from '@remuda/schemas';
import { paddedShape } from '../batching/padding.js';
import { InferenceError } from '../errors.js';
import type { HarnessBatch } from '../harness/harness.js';
import { asElements } from '../harness/onnx-types.js';
import { byteMover, copyBox, elementMover, type Place } from './block-copy.js';
import type { BufferPool } from './buffer-pool.js';

/** What must be known of a model to batch for it: its own tensors, not those that users see. */
export interface BatchModel {
  inputs: readonly SignatureTensor[];
  outputs: readonly SignatureTensor[];
  padding: readonly PaddingRule[];
  /** 1 for a model without batch axes. */
  maxBatchSize: number;
}

/** One item, ready to run. */
export interface BatchItem {
  inputs: readonly RawTensor[];
  rows: number;
}

/** Rows [from, to) of an item. */
export interface Piece {
  item: number;
  from: number;
  to: number;
}

/** Counts an item's rows and checks that its inputs agree. @throws InferenceError item_rejected */
export function rowsOf(inputs: readonly RawTensor[], model: BatchModel): number {
  let rows: number | undefined;
  for (const { name, batch_axis: axis, shape } of model.inputs) {
    const tensor = inputs.find((candidate) => candidate.name === name);
    if (!tensor) throw reject(`input "${name}" is missing`);
    if (tensor.shape.length !== shape.length) {
      throw reject(`input "${name}" has ${tensor.shape.length} axes, the model takes ${shape.length}`);
    }
    if (axis === null) continue;
    const own = tensor.shape[axis] as number;
    if (rows !== undefined && own !== rows)
      throw reject(`input "${name}" has ${own} rows, others have ${rows}`);
    rows = own;
  }
  return rows ?? 1;
}

function reject(message: string): InferenceError {
  return new InferenceError('item_rejected', message);
}

/** Packs items, all of one compatibility group, into runs of at most `maxRows`, in order. */
export function planRuns(rows: readonly number[], maxRows: number): Piece[][] {
  const runs: Piece[][] = [];
  let open: Piece[] = [];
  let used = 0;
  const close = (): void => {
    if (open.length > 0) runs.push(open);
    open = [];
    used = 0;
  };
  rows.forEach((count, item) => {
    // An item that fits a run whole is never cut, so that most items run once.
    if (used > 0 && used + count > maxRows && count <= maxRows) close();
    let from = 0;
    do {
      if (used >= maxRows) close();
      const to = Math.min(count, from + maxRows - used);
      open.push({ item, from, to });
      used += to - from;
      from = to;
    } while (from < count);
  });
  close();
  return runs;
}

/** A batch and the pooled buffers under it. */
export interface AssembledBatch extends HarnessBatch {
  buffers: ArrayBuffer[];
  /** Until when it may begin as it is, by performance.now(); behind that it is made anew. Default: for ever. */
  goodUntil?: number;
}

/**
 * The tensors of one run.
 * @throws InferenceError inference_failed when the pieces do not fit together (the caller grouped them wrongly)
 */
export function assemble(
  pieces: readonly Piece[],
  items: readonly BatchItem[],
  model: BatchModel,
  pool: BufferPool,
): AssembledBatch {
  const rows = pieces.reduce((sum, piece) => sum + piece.to - piece.from, 0);
  const buffers: ArrayBuffer[] = [];
  const allocate = (bytes: number): Uint8Array => {
    const buffer = pool.acquire(bytes);
    buffers.push(buffer);
    return new Uint8Array(buffer, 0, bytes);
  };
  try {
    const inputs = model.inputs.map((input) => {
      const parts = pieces.map((piece): Part => {
        const inputs = (items[piece.item] as BatchItem).inputs;
        return { piece, tensor: inputs.find((tensor) => tensor.name === input.name) as RawTensor };
      });
      return assembleInput(input, parts, rows, model.padding, allocate);
    });
    return { rows, inputs, buffers };
  } catch (error) {
    for (const buffer of buffers) pool.release(buffer);
    throw error;
  }
}

interface Part {
  piece: Piece;
  tensor: RawTensor;
}

type Allocate = (bytes: number) => Uint8Array;

function assembleInput(
  input: SignatureTensor,
  parts: readonly Part[],
  rows: number,
  rules: readonly PaddingRule[],
  allocate: Allocate,
): RawTensor {
  const axis = input.batch_axis;
  const shape = commonShape(input, parts, rules);
  if (axis !== null) shape[axis] = rows;
  const { datatype, name } = (parts[0] as Part).tensor;
  const used = axis === null ? parts.slice(0, 1) : parts;
  const fill = needsPadding(shape, used, axis) ? paddingValue(name, rules) : undefined;
  if (datatype === 'BYTES') return { name, datatype, shape, bytes: placeElements(used, shape, axis) };

  const width = ELEMENT_BYTES[datatype];
  const bytes = allocate(elementCount(shape) * width);
  if (fill !== undefined) fillWith(datatype, bytes, fill);
  placeParts(used, shape, axis, (tensor) => byteMover(tensor.bytes, bytes, width));
  return { name, datatype, shape, bytes };
}

/** The padded shape that all parts share, the longest along padded axes. */
function commonShape(
  input: SignatureTensor,
  parts: readonly Part[],
  rules: readonly PaddingRule[],
): number[] {
  const padded = new Set(rules.filter((rule) => rule.input === input.name).map((rule) => rule.axis));
  let common: number[] | undefined;
  const { tensor: first } = parts[0] as Part;
  for (const { tensor } of parts) {
    const shape = paddedShape(input.name, tensor.shape, rules);
    if (tensor.datatype !== first.datatype || shape.length !== first.shape.length)
      throw mismatch(first, tensor);
    common ??= [...shape];
    for (let axis = 0; axis < shape.length; axis++) {
      if (axis === input.batch_axis || shape[axis] === common[axis]) continue;
      if (!padded.has(axis)) throw mismatch(first, tensor);
      common[axis] = Math.max(common[axis] as number, shape[axis] as number);
    }
    if (input.batch_axis === null && tensor !== first && !sameBytes(tensor.bytes, first.bytes)) {
      throw new InferenceError(
        'inference_failed',
        `input "${input.name}" has no batch axis and differs within a batch`,
      );
    }
  }
  return common as number[];
}

function mismatch(a: RawTensor, b: RawTensor): InferenceError {
  const text = ({ datatype, shape }: RawTensor): string => `${datatype} [${shape.join(', ')}]`;
  return new InferenceError(
    'inference_failed',
    `input "${a.name}": ${text(a)} and ${text(b)} cannot share a batch`,
  );
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && Buffer.compare(a, b) === 0;
}

function needsPadding(shape: readonly number[], parts: readonly Part[], batchAxis: number | null): boolean {
  return parts.some(({ tensor }) =>
    tensor.shape.some((dim, axis) => axis !== batchAxis && dim !== shape[axis]),
  );
}

function paddingValue(input: string, rules: readonly PaddingRule[]): number {
  return rules.find((rule) => rule.input === input)?.value ?? 0;
}

/** Fills an aligned buffer with one number. */
function fillWith(datatype: Exclude<Datatype, 'BYTES'>, bytes: Uint8Array, value: number): void {
  const elements = asElements(datatype, bytes);
  if (elements instanceof BigInt64Array || elements instanceof BigUint64Array) {
    elements.fill(BigInt(Math.trunc(value)));
  } else elements.fill(datatype === 'FP16' ? toHalfBits(value) : value);
}

/** Copies every part to its rows of a tensor of the given shape. */
function placeParts(
  parts: readonly Part[],
  shape: readonly number[],
  axis: number | null,
  moverFrom: (tensor: RawTensor) => ReturnType<typeof byteMover>,
): void {
  let row = 0;
  for (const { piece, tensor } of parts) {
    const extent = [...tensor.shape];
    const source: Place = { shape: tensor.shape, origin: new Array<number>(shape.length).fill(0) };
    const target: Place = { shape, origin: new Array<number>(shape.length).fill(0) };
    if (axis !== null) {
      const count = piece.to - piece.from;
      extent[axis] = count;
      (source.origin as number[])[axis] = piece.from;
      (target.origin as number[])[axis] = row;
      row += count;
    }
    copyBox(source, target, extent, moverFrom(tensor));
  }
}

const EMPTY = new Uint8Array(0);

/** BYTES have elements of any length: they move as lists, and padding is the empty string. */
function placeElements(parts: readonly Part[], shape: readonly number[], axis: number | null): Uint8Array {
  const elements = new Array<Uint8Array>(elementCount(shape)).fill(EMPTY);
  placeParts(parts, shape, axis, (tensor) => elementMover(splitBytesElements(tensor.bytes), elements));
  return joinBytesElements(elements);
}
