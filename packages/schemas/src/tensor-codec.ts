/**
 * The one codec between tensors on the wire (JSON elements, base64) and RawTensor, for every datatype. Rules:
 * integers outside the datatype's range, fractions, and JSON integers beyond 2^53 (which JSON.parse has already
 * rounded) are refused, never truncated; 64-bit integers may come as decimal strings and leave as such when a number
 * would lose digits; NaN and infinities travel as the strings "NaN", "Infinity", "-Infinity".
 */
import {
  type Datatype,
  ELEMENT_BYTES,
  elementCount,
  fromHalfBits,
  INTEGER_RANGE,
  toHalfBits,
} from './datatypes.js';
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
      ? encodeElements(flatten(tensor.data, shape, [...path, 'data']), datatype)
      : checkedBytes(decodeBase64(tensor.b64, [...path, 'b64']), datatype, shape, [...path, 'b64']);
  return { name, datatype, shape, bytes };
}

/** Raw bytes as a wire tensor with JSON elements, flat. */
export function encodeTensor(tensor: RawTensor): Tensor {
  return { datatype: tensor.datatype, shape: tensor.shape, data: decodeElements(tensor) };
}

/** Raw bytes as a wire tensor in base64. */
export function encodeTensorBase64(tensor: RawTensor): Tensor {
  return {
    datatype: tensor.datatype,
    shape: tensor.shape,
    b64: Buffer.from(tensor.bytes).toString('base64'),
  };
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
    if (datatype === 'BOOL') {
      const wrong = bytes.findIndex((byte) => byte > 1);
      if (wrong >= 0) refuse([...path, wrong], '0 or 1 (BOOL)', String(bytes[wrong]));
    }
    return bytes;
  }
  const elements = countBytesElements(bytes, path);
  if (elements !== count)
    refuse(path, `${count} elements (BYTES [${shape.join(', ')}])`, `${elements} elements`);
  return bytes;
}

/** The shape of nested arrays: lengths along the first element of each level. Ragged ones are found by flatten. */
export function nestedShape(value: unknown): number[] {
  const shape: number[] = [];
  let level = value;
  while (Array.isArray(level)) {
    shape.push(level.length);
    level = level[0];
  }
  return shape;
}

interface Located {
  values: unknown[];
  pathOf(index: number): Path;
}

/** Elements in row-major order: taken as they are when flat, walked level by level when nested as the shape says. */
function flatten(data: unknown, shape: readonly number[], path: Path): Located {
  const count = elementCount(shape);
  if (!Array.isArray(data)) {
    if (shape.length === 0 || count === 1) return { values: [data], pathOf: () => path };
    return refuse(path, `an array of ${count} elements`, describeValue(data));
  }
  const nested = shape.length > 1 && Array.isArray(data[0]);
  if (!nested) {
    if (data.length !== count) {
      refuse(path, `${count} elements (shape [${shape.join(', ')}])`, `${data.length} elements`);
    }
    return { values: data, pathOf: (index) => [...path, index] };
  }
  const values: unknown[] = [];
  walk(data, shape, 0, path, values);
  return { values, pathOf: (index) => [...path, ...coordinates(index, shape)] };
}

function walk(level: unknown, shape: readonly number[], axis: number, path: Path, into: unknown[]): void {
  if (!Array.isArray(level) || level.length !== shape[axis]) {
    const received = Array.isArray(level) ? `${level.length} entries` : describeValue(level);
    refuse(path, `${shape[axis]} entries (axis ${axis} of shape [${shape.join(', ')}])`, received);
  }
  if (axis === shape.length - 1) {
    for (const value of level) into.push(value);
    return;
  }
  for (let i = 0; i < level.length; i++) walk(level[i], shape, axis + 1, [...path, i], into);
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
  const { values } = source;
  const bytes = new Uint8Array(values.length * ELEMENT_BYTES[datatype]);
  const view = new DataView(bytes.buffer);
  const write = WRITERS[datatype];
  for (let i = 0; i < values.length; i++) {
    const wrong = write(view, i, values[i]);
    if (wrong !== undefined) refuse(source.pathOf(i), wrong, describeValue(values[i]));
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
  return (view, i, value) => {
    let big: bigint;
    if (typeof value === 'number') {
      if (!Number.isInteger(value)) return range;
      if (!Number.isSafeInteger(value)) {
        return `${range}; beyond 2^53 as a decimal string, since a JSON number has lost digits there`;
      }
      big = BigInt(value);
    } else if (typeof value === 'string' && /^-?\d{1,20}$/.test(value)) big = BigInt(value);
    else return range;
    if (big < low || big > high) return range;
    set(view, i, big);
    return undefined;
  };
}

const SPECIAL_FLOATS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
};

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
    const special = typeof value === 'string' ? SPECIAL_FLOATS[value] : undefined;
    if (special === undefined) return expected;
    set(view, i, special);
    return undefined;
  };
}

function encodeStrings(source: Located): Uint8Array {
  const parts: Buffer[] = [];
  source.values.forEach((value, index) => {
    if (typeof value !== 'string') refuse(source.pathOf(index), 'a string (BYTES)', describeValue(value));
    parts.push(Buffer.from(value, 'utf8'));
  });
  return joinBytesElements(parts);
}

/** BYTES elements in the binary layout: each with its length (uint32 little-endian) before it. */
export function joinBytesElements(elements: readonly Uint8Array[]): Uint8Array {
  const total = elements.reduce((sum, element) => sum + 4 + element.byteLength, 0);
  const out = Buffer.allocUnsafe(total);
  let offset = 0;
  for (const element of elements) {
    out.writeUInt32LE(element.byteLength, offset);
    out.set(element, offset + 4);
    offset += 4 + element.byteLength;
  }
  return out;
}

/** The elements of a BYTES tensor, as views. Trusts bytes that were checked. */
export function splitBytesElements(bytes: Uint8Array): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const out: Uint8Array[] = [];
  for (let offset = 0; offset < bytes.byteLength; ) {
    const length = view.getUint32(offset, true);
    out.push(bytes.subarray(offset + 4, offset + 4 + length));
    offset += 4 + length;
  }
  return out;
}

function countBytesElements(bytes: Uint8Array, path: Path): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let offset = 0;
  let count = 0;
  while (offset < bytes.byteLength) {
    const left = bytes.byteLength - offset - 4;
    const length = left >= 0 ? view.getUint32(offset, true) : -1;
    if (length < 0 || length > left) {
      refuse(
        [...path, count],
        'a uint32 length and that many bytes for each BYTES element',
        left < 0 ? `${left + 4} bytes left over` : `a length of ${length} with ${left} bytes left`,
      );
    }
    offset += 4 + length;
    count++;
  }
  return count;
}

/** Strict base64 (RFC 4648 section 4, or the URL-safe alphabet of section 5), padding optional. @throws InvalidInputError */
export function decodeBase64(text: string, path: Path): Buffer {
  const bytes = Buffer.from(text, 'base64');
  const body = text.endsWith('=') ? text.replace(/={1,2}$/, '') : text;
  // Buffer.from skips what it does not know; a right length and a clean alphabet show that it skipped nothing.
  if (
    body.length % 4 === 1 ||
    bytes.length !== Math.floor((body.length * 3) / 4) ||
    /[^A-Za-z0-9+/_-]/.test(body)
  ) {
    const wrong = /[^A-Za-z0-9+/_-]/.exec(body);
    refuse(
      path,
      'base64',
      wrong
        ? `character ${JSON.stringify(wrong[0])} at position ${wrong.index}`
        : `${text.length} characters, a length base64 cannot have`,
    );
  }
  return bytes;
}

type JsonElement = number | string | boolean;

function decodeElements(tensor: RawTensor): JsonElement[] {
  const { datatype, bytes } = tensor;
  if (datatype === 'BYTES')
    return splitBytesElements(bytes).map((element) => Buffer.from(element).toString('utf8'));
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
