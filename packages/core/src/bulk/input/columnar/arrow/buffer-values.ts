/** Values of flat columns from the buffers of a batch: numbers as views of what was read, bits, texts by their offsets. */
import type { Column, NumericType, NumericValues } from '../../../columns.js';
import { NUMERIC_ARRAY } from '../../../numeric-types.js';
import { type DataType, Type } from './arrow-layout.js';
import type { BatchBuffers } from './batch-buffers.js';

export async function numbers(
  name: string,
  type: NumericType,
  buffer: number,
  [from, to]: readonly [number, number],
  buffers: BatchBuffers,
): Promise<{ name: string; type: NumericType; values: NumericValues }> {
  const Values = NUMERIC_ARRAY[type] as unknown as {
    BYTES_PER_ELEMENT: number;
    new (buffer: ArrayBufferLike, offset: number, length: number): NumericValues;
  };
  const width = Values.BYTES_PER_ELEMENT;
  const bytes = await buffers.bytes(buffer, from * width, to * width);
  return { name, type, values: new Values(bytes.buffer, bytes.byteOffset, to - from) };
}

/** A byte for each bit, lowest first. */
export async function bits(
  buffer: number,
  from: number,
  to: number,
  buffers: BatchBuffers,
): Promise<Uint8Array> {
  const first = from >> 3;
  const bytes = await buffers.bytes(buffer, first, (to + 7) >> 3);
  const out = new Uint8Array(to - from);
  for (let i = 0; i < out.length; i++) {
    const bit = from + i - first * 8;
    out[i] = ((bytes[bit >> 3] as number) >> (bit & 7)) & 1;
  }
  return out;
}

/** Offsets of rows [from, to], checked to go up. */
export async function offsets(
  large: boolean,
  buffer: number,
  [from, to]: readonly [number, number],
  buffers: BatchBuffers,
): Promise<Float64Array> {
  const { values } = await numbers('', large ? 'int64' : 'int32', buffer, [from, to + 1], buffers);
  const out = new Float64Array(values.length);
  for (let i = 0; i < out.length; i++) {
    out[i] = Number(values[i]);
    if ((out[i] as number) < (i === 0 ? 0 : (out[i - 1] as number))) {
      throw buffers.damaged(buffer, `offset ${from + i} is ${out[i]}, less than the one before`);
    }
  }
  return out;
}

export async function texts(
  name: string,
  { typeId }: DataType,
  buffer: number,
  range: readonly [number, number],
  buffers: BatchBuffers,
): Promise<Column> {
  const large = typeId === Type.LargeUtf8 || typeId === Type.LargeBinary;
  const at = await offsets(large, buffer, range, buffers);
  const begin = at[0] as number;
  const bytes = await buffers.bytes(buffer + 1, begin, at.at(-1) as number);
  const piece = (i: number): Uint8Array =>
    bytes.subarray((at[i] as number) - begin, (at[i + 1] as number) - begin);
  return elements(name, typeId === Type.Utf8 || typeId === Type.LargeUtf8, at.length - 1, piece);
}

function elements(name: string, isText: boolean, count: number, piece: (i: number) => Uint8Array): Column {
  if (!isText) {
    const values = Array.from({ length: count }, (_, i) => new Uint8Array(piece(i)));
    return { name, type: 'bytes', values };
  }
  const values = Array.from({ length: count }, (_, i) => {
    const bytes = piece(i);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  });
  return { name, type: 'string', values };
}

/** Sixteen bytes each: the length, then the text itself where it is short, else which buffer it is in and where. */
export async function views(
  name: string,
  { typeId }: DataType,
  buffer: number,
  [from, to]: readonly [number, number],
  buffers: BatchBuffers,
): Promise<Column> {
  const bytes = await buffers.bytes(buffer, from * 16, to * 16);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const spans = viewSpans(view, to - from);
  const held = new Map<number, { begin: number; bytes: Uint8Array }>();
  for (const [index, { begin, end }] of spans) {
    held.set(index, { begin, bytes: await buffers.bytes(buffer + 1 + index, begin, end) });
  }
  return elements(name, typeId === Type.Utf8View, to - from, (i) => {
    const length = view.getInt32(i * 16, true);
    if (length <= 12) return bytes.subarray(i * 16 + 4, i * 16 + 4 + length);
    const from = view.getInt32(i * 16 + 12, true);
    const span = held.get(view.getInt32(i * 16 + 8, true));
    return span ? span.bytes.subarray(from - span.begin, from - span.begin + length) : new Uint8Array(0);
  });
}

/** What of each buffer the views point at. */
function viewSpans(view: DataView, count: number): Map<number, { begin: number; end: number }> {
  const spans = new Map<number, { begin: number; end: number }>();
  for (let i = 0; i < count; i++) {
    const length = view.getInt32(i * 16, true);
    if (length <= 12) continue;
    const index = view.getInt32(i * 16 + 8, true);
    const begin = view.getInt32(i * 16 + 12, true);
    const span = spans.get(index);
    spans.set(index, {
      begin: Math.min(begin, span?.begin ?? begin),
      end: Math.max(begin + length, span?.end ?? 0),
    });
  }
  return spans;
}
