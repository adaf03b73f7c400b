/**
 * The one codec between tensors on the wire (JSON elements, base64) and RawTensor, for every datatype. Rules:
 * integers outside the datatype's range, fractions, and JSON integers beyond 2^53 (which JSON.parse has already
 * rounded) are refused, never truncated; 64-bit integers may come as decimal strings and leave as such when a number
 * would lose digits; NaN and infinities travel as the strings "NaN", "Infinity", "-Infinity".
 */
import { decodeBase64 } from './base64.js';
import { countBytesElements, joinBytesElements, textElements } from './bytes-elements.js';
import { type Datatype, ELEMENT_BYTES, elementCount, INTEGER_RANGE } from './datatypes.js';
import { fromHalfBits, toHalfBits } from './half-float.js';
import type { RawTensor, Tensor } from './tensor.js';
import { describeValue, refuse } from './violation.js';

type Path = readonly PropertyKey[];

/**
 * A wire tensor as raw bytes.
 * @param path where the tensor stands in the body, for messages
 * @throws InvalidInputError with the path of the first element that does not fit
 */
export function decodeTensor(name: string, tensor: Tensor, path: Path): RawTensor {
  const { datatype, shape } = tensor;
  const bytes =
    tensor.b64 === undefined
      ? encodeElements(locate(tensor.data, shape, [...path, 'data']), datatype)
      : checkedBytes(decodeBase64(tensor.b64, [...path, 'b64']), datatype, shape, [...path, 'b64']);
  return { name, datatype, shape, bytes };
}

/** Raw bytes as a wire tensor with JSON elements, flat; in base64 where BYTES are not UTF-8, which JSON would damage. */
export function encodeTensor(tensor: RawTensor): Tensor {
  const data = decodeElements(tensor);
  if (data === undefined) return encodeTensorBase64(tensor);
  return { datatype: tensor.datatype, shape: tensor.shape, data };
}

/** Raw bytes as a wire tensor in base64. */
export function encodeTensorBase64({ datatype, shape, bytes }: RawTensor): Tensor {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { datatype, shape, b64: view.toString('base64') };
}

/** Bytes that came over the wire, checked against datatype and shape. @throws InvalidInputError */
export function checkedBytes(
  bytes: Uint8Array,
  datatype: Datatype,
  shape: readonly number[],
  path: Path,
): Uint8Array {
  const count = elementCount(shape);
  const width = ELEMENT_BYTES[datatype];
  if (width > 0) {
    if (bytes.byteLength !== width * count) {
      refuse(path, `${width * count} bytes (${datatype} [${shape.join(', ')}])`, `${bytes.byteLength} bytes`);
    }
    if (datatype === 'BOOL') refuseOtherThanBits(bytes, path);
    return bytes;
  }
  const elements = countBytesElements(bytes, path);
  if (elements !== count)
    refuse(path, `${count} elements (BYTES [${shape.join(', ')}])`, `${elements} elements`);
  return bytes;
}

/** A plain loop: a callback for each byte would cost ten times as much. */
function refuseOtherThanBits(bytes: Uint8Array, path: Path): void {
  for (let i = 0; i < bytes.length; i++) {
    if ((bytes[i] as number) > 1) refuse([...path, i], '0 or 1 (BOOL)', String(bytes[i]));
  }
}

/** The shape of nested arrays: lengths along the first element of each level. Ragged ones are found by decodeTensor. */
export function nestedShape(value: unknown): number[] {
  const shape: number[] = [];
  let level = value;
  while (Array.isArray(level)) {
    shape.push(level.length);
    level = level[0];
  }
  return shape;
}

/** Elements in row-major order, as the arrays they stand in: one when flat, each innermost one when nested. */
interface Located {
  count: number;
  runs: readonly unknown[][];
  pathOf(index: number): Path;
}

/** Elements taken as they are when flat, or found level by level when nested as the shape says. */
function locate(data: unknown, shape: readonly number[], path: Path): Located {
  const count = elementCount(shape);
  if (!Array.isArray(data)) {
    if (count === 1) return { count, runs: [[data]], pathOf: () => path };
    return refuse(path, `an array of ${count} elements`, describeValue(data));
  }
  const nested = shape.length > 1 && Array.isArray(data[0]);
  if (!nested) {
    if (data.length !== count) {
      refuse(path, `${count} elements (shape [${shape.join(', ')}])`, `${data.length} elements`);
    }
    return { count, runs: [data], pathOf: (index) => [...path, index] };
  }
  const runs: unknown[][] = [];
  collectRuns(data, shape, 0, path, runs);
  return { count, runs, pathOf: (index) => [...path, ...coordinates(index, shape)] };
}

function collectRuns(
  level: unknown,
  shape: readonly number[],
  axis: number,
  path: Path,
  into: unknown[][],
): void {
  if (!Array.isArray(level) || level.length !== shape[axis]) {
    const received = Array.isArray(level) ? `${level.length} entries` : describeValue(level);
    refuse(path, `${shape[axis]} entries (axis ${axis} of shape [${shape.join(', ')}])`, received);
  }
  if (axis === shape.length - 1) into.push(level);
  else for (let i = 0; i < level.length; i++) collectRuns(level[i], shape, axis + 1, [...path, i], into);
}

function coordinates(index: number, shape: readonly number[]): number[] {
  const out: number[] = [];
  let rest = index;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = shape[axis] as number;
    out.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return out;
}

function encodeElements(source: Located, datatype: Datatype): Uint8Array {
  if (datatype === 'BYTES') return encodeStrings(source);
  const bytes = new Uint8Array(source.count * ELEMENT_BYTES[datatype]);
  const view = new DataView(bytes.buffer);
  const write = WRITERS[datatype];
  let index = 0;
  for (const run of source.runs) {
    for (let i = 0; i < run.length; i++, index++) {
      const wrong = write(view, index, run[i]);
      if (wrong !== undefined) refuse(source.pathOf(index), wrong, describeValue(run[i]));
    }
  }
  return bytes;
}

/** Writes one element; returns what was expected when the value does not fit. */
type Writer = (view: DataView, index: number, value: unknown) => string | undefined;

const WRITERS: Record<Exclude<Datatype, 'BYTES'>, Writer> = {
  BOOL: (view, i, value) => {
    if (value === true || value === 1) view.setUint8(i, 1);
    else if (value !== false && value !== 0) return 'true or false (BOOL)';
    return undefined;
  },
  UINT8: smallInteger('UINT8', (view, i, value) => view.setUint8(i, value)),
  UINT16: smallInteger('UINT16', (view, i, value) => view.setUint16(i * 2, value, true)),
  UINT32: smallInteger('UINT32', (view, i, value) => view.setUint32(i * 4, value, true)),
  INT8: smallInteger('INT8', (view, i, value) => view.setInt8(i, value)),
  INT16: smallInteger('INT16', (view, i, value) => view.setInt16(i * 2, value, true)),
  INT32: smallInteger('INT32', (view, i, value) => view.setInt32(i * 4, value, true)),
  UINT64: bigInteger('UINT64', (view, i, value) => view.setBigUint64(i * 8, value, true)),
  INT64: bigInteger('INT64', (view, i, value) => view.setBigInt64(i * 8, value, true)),
  FP16: float('FP16', 65_504, (view, i, value) => view.setUint16(i * 2, toHalfBits(value), true)),
  FP32: float('FP32', 3.4028234663852886e38, (view, i, value) => view.setFloat32(i * 4, value, true)),
  FP64: float('FP64', Number.MAX_VALUE, (view, i, value) => view.setFloat64(i * 8, value, true)),
};

function smallInteger(datatype: Datatype, set: (view: DataView, i: number, value: number) => void): Writer {
  const [low, high] = (INTEGER_RANGE[datatype] as readonly [bigint, bigint]).map(Number) as [number, number];
  const expected = `a whole number from ${low} to ${high} (${datatype})`;
  return (view, i, value) => {
    if (typeof value !== 'number' || !Number.isInteger(value) || value < low || value > high) return expected;
    set(view, i, value);
    return undefined;
  };
}

function bigInteger(datatype: Datatype, set: (view: DataView, i: number, value: bigint) => void): Writer {
  const [low, high] = INTEGER_RANGE[datatype] as readonly [bigint, bigint];
  const range = `a whole number from ${low} to ${high} (${datatype})`;
  const lowest = Number(low);
  return (view, i, value) => {
    if (typeof value === 'number') {
      if (!Number.isInteger(value)) return range;
      if (!Number.isSafeInteger(value)) {
        return `${range}; beyond 2^53 as a decimal string, since a JSON number has lost digits there`;
      }
      if (value < lowest) return range;
      setSafeInteger(view, i * 8, value);
      return undefined;
    }
    if (typeof value !== 'string' || !/^-?\d{1,20}$/.test(value)) return range;
    const big = BigInt(value);
    if (big < low || big > high) return range;
    set(view, i, big);
    return undefined;
  };
}

/** Two's complement in two halves: four times as fast as through a BigInt, and token ids are INT64. */
function setSafeInteger(view: DataView, offset: number, value: number): void {
  view.setInt32(offset, value | 0, true);
  view.setInt32(offset + 4, Math.floor(value / 2 ** 32), true);
}

/** A Map: an object would also answer to "constructor". */
const SPECIAL_FLOATS = new Map<unknown, number>([
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
]);

function float(
  datatype: Datatype,
  largest: number,
  set: (view: DataView, i: number, value: number) => void,
): Writer {
  const expected = `a number up to ±${largest}, or "NaN", "Infinity", "-Infinity" (${datatype})`;
  // Halfway to the next step beyond the largest still rounds down to it, as IEEE 754 does.
  const limit =
    datatype === 'FP16' ? 65_520 : datatype === 'FP32' ? 3.4028235677973366e38 : Number.POSITIVE_INFINITY;
  return (view, i, value) => {
    if (typeof value === 'number') {
      if (Math.abs(value) >= limit) return expected;
      set(view, i, value);
      return undefined;
    }
    const special = SPECIAL_FLOATS.get(value);
    if (special === undefined) return expected;
    set(view, i, special);
    return undefined;
  };
}

function encodeStrings(source: Located): Uint8Array {
  const elements = source.runs.flat().map((value, index) => {
    if (typeof value !== 'string') refuse(source.pathOf(index), 'a string (BYTES)', describeValue(value));
    if (/\p{Surrogate}/u.test(value)) {
      refuse(source.pathOf(index), 'well-formed Unicode (BYTES)', 'half of a surrogate pair');
    }
    return Buffer.from(value, 'utf8');
  });
  return joinBytesElements(elements);
}

type JsonElement = number | string | boolean;

/** The elements as JSON; undefined where JSON cannot hold them. */
function decodeElements({ datatype, bytes }: RawTensor): JsonElement[] | undefined {
  if (datatype === 'BYTES') return textElements(bytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const read = READERS[datatype];
  const out = new Array<JsonElement>(bytes.byteLength / ELEMENT_BYTES[datatype]);
  for (let i = 0; i < out.length; i++) out[i] = read(view, i);
  return out;
}

const READERS: Record<Exclude<Datatype, 'BYTES'>, (view: DataView, index: number) => JsonElement> = {
  BOOL: (view, i) => view.getUint8(i) !== 0,
  UINT8: (view, i) => view.getUint8(i),
  UINT16: (view, i) => view.getUint16(i * 2, true),
  UINT32: (view, i) => view.getUint32(i * 4, true),
  UINT64: (view, i) => exact(view.getBigUint64(i * 8, true)),
  INT8: (view, i) => view.getInt8(i),
  INT16: (view, i) => view.getInt16(i * 2, true),
  INT32: (view, i) => view.getInt32(i * 4, true),
  INT64: (view, i) => exact(view.getBigInt64(i * 8, true)),
  FP16: (view, i) => finite(fromHalfBits(view.getUint16(i * 2, true))),
  FP32: (view, i) => finite(view.getFloat32(i * 4, true)),
  FP64: (view, i) => finite(view.getFloat64(i * 8, true)),
};

function exact(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

function finite(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}
