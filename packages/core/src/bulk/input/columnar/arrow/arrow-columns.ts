/**
 * Rows of a column of a record batch, from its buffers: numbers are views of what was read, texts and lists are cut out
 * by their offsets, and times and decimals become the texts that say all of them.
 */
import { fromHalfBits } from '@remuda/schemas';
import type { Column, NumericType, NumericValues } from '../../../columns.js';
import { takeRows } from '../take-rows.js';
import {
  childrenOf,
  type DataType,
  type Field,
  type Place,
  Precision,
  placeAfter,
  Type,
  typeText,
} from './arrow-layout.js';
import { dateText, decimalText, timestampText, timeText } from './arrow-texts.js';
import type { BatchBuffers } from './batch-buffers.js';
import { bits, numbers, offsets, texts, views } from './buffer-values.js';

/** Values of a dictionary, by its id. */
export type Dictionaries = (id: number) => Promise<Column>;

export interface ColumnSource {
  buffers: BatchBuffers;
  dictionaries: Dictionaries;
}

/** Of a type that has no sensible form as a column. */
export class UnsupportedArrowType extends Error {}

const UNREADABLE: ReadonlySet<Type> = new Set([Type.Union, Type.Interval, Type.Duration, Type.NONE]);

/** Whether it has a sensible form, with all that is in it. */
export function canRead(type: DataType): boolean {
  return (
    !UNREADABLE.has(type.typeId) &&
    !(type.typeId > Type.Utf8View) &&
    childrenOf(type).every((child) => canRead(child.type))
  );
}

/** Rows [from, to) of the column at a place of its batch. */
export async function readColumn(
  name: string,
  type: DataType,
  place: Place,
  [from, to]: readonly [number, number],
  source: ColumnSource,
): Promise<Column> {
  const nulls = await nullsOf(type, place, from, to, source);
  const column = await valuesOf(name, type, place, [from, to], source);
  if (!nulls) return column;
  if (column.type === 'string' || column.type === 'bytes' || column.type === 'json') {
    for (let row = 0; row < nulls.length; row++) if (nulls[row]) column.values[row] = null;
  }
  return { ...column, nulls };
}

/** 1 where there is none; undefined: there are no nulls. */
async function nullsOf(
  type: DataType,
  { node, buffer }: Place,
  from: number,
  to: number,
  { buffers }: ColumnSource,
): Promise<Uint8Array | undefined> {
  if (type.typeId === Type.Null) return new Uint8Array(to - from).fill(1);
  if (type.typeId === Type.Union) return undefined;
  const count = buffers.header.nodes[node]?.nullCount ?? 0;
  if (count === 0 || buffers.lengthOf(buffer) === 0) return undefined;
  const valid = await bits(buffer, from, to, buffers);
  let some = false;
  for (let row = 0; row < valid.length; row++) {
    valid[row] = valid[row] === 1 ? 0 : 1;
    if (valid[row]) some = true;
  }
  return some ? valid : undefined;
}

async function valuesOf(
  name: string,
  type: DataType,
  place: Place,
  range: readonly [number, number],
  source: ColumnSource,
): Promise<Column> {
  const [from, to] = range;
  const data = place.buffer + 1;
  const { buffers } = source;
  switch (type.typeId) {
    case Type.Null:
      return { name, type: 'json', values: new Array(to - from).fill(null) };
    case Type.Bool:
      return { name, type: 'bool', values: await bits(data, from, to, buffers) };
    case Type.Int:
      return numbers(name, typeText(type) as NumericType, data, range, buffers);
    case Type.Float:
      if ((type as unknown as { precision: number }).precision === Precision.HALF) {
        const halves = await numbers(name, 'uint16', data, range, buffers);
        const values = Float32Array.from(halves.values as Uint16Array, fromHalfBits);
        return { name, type: 'float32', values };
      }
      return numbers(name, typeText(type) as NumericType, data, range, buffers);
    case Type.Utf8:
    case Type.LargeUtf8:
    case Type.Binary:
    case Type.LargeBinary:
      return texts(name, type, data, range, buffers);
    case Type.Utf8View:
    case Type.BinaryView:
      return views(name, type, data, range, buffers);
    case Type.FixedSizeBinary: {
      const width = (type as unknown as { byteWidth: number }).byteWidth;
      const bytes = await buffers.bytes(data, from * width, to * width);
      const values = Array.from(
        { length: to - from },
        (_, i) => new Uint8Array(bytes.subarray(i * width, (i + 1) * width)),
      );
      return { name, type: 'bytes', values };
    }
    case Type.List:
    case Type.LargeList:
      return lists(name, type, place, range, source);
    case Type.FixedSizeList:
      return fixedLists(name, type, place, range, source);
    case Type.Struct:
      return structs(name, type, place, range, source);
    case Type.Dictionary: {
      const { indices, id } = type as unknown as { indices: DataType; id: number };
      const keys = await numbers(name, typeText(indices) as NumericType, data, range, buffers);
      const absent = await nullsOf(type, place, from, to, source);
      return { ...takeRows(await source.dictionaries(id), keysOf(keys.values, absent)), name };
    }
    case Type.Date:
    case Type.Time:
    case Type.Timestamp:
    case Type.Decimal:
      return asTexts(name, type, data, range, buffers);
    default:
      throw new UnsupportedArrowType(typeText(type));
  }
}

/** Keys of nulls may be anything. */
function keysOf(keys: NumericValues, nulls: Uint8Array | undefined): Uint32Array {
  const places = new Uint32Array(keys.length);
  for (let i = 0; i < keys.length; i++) places[i] = nulls?.[i] ? 0 : Number(keys[i]);
  return places;
}

async function lists(
  name: string,
  type: DataType,
  place: Place,
  range: readonly [number, number],
  source: ColumnSource,
): Promise<Column> {
  const at = await offsets(type.typeId === Type.LargeList, place.buffer + 1, range, source.buffers);
  const begin = at[0] as number;
  const [item] = childrenOf(type) as [Field];
  const inside = { node: place.node + 1, buffer: place.buffer + 2, view: place.view };
  const child = await readColumn(item.name, item.type, inside, [begin, at.at(-1) as number], source);
  return { name, type: 'list', offsets: Uint32Array.from(at, (offset) => offset - begin), child };
}

async function fixedLists(
  name: string,
  type: DataType,
  place: Place,
  [from, to]: readonly [number, number],
  source: ColumnSource,
): Promise<Column> {
  const size = (type as unknown as { listSize: number }).listSize;
  const [item] = childrenOf(type) as [Field];
  const inside = { node: place.node + 1, buffer: place.buffer + 1, view: place.view };
  const child = await readColumn(item.name, item.type, inside, [from * size, to * size], source);
  return {
    name,
    type: 'list',
    offsets: Uint32Array.from({ length: to - from + 1 }, (_, i) => i * size),
    child,
  };
}

/** As objects, field by field. */
async function structs(
  name: string,
  type: DataType,
  place: Place,
  range: readonly [number, number],
  source: ColumnSource,
): Promise<Column> {
  let inside: Place = { node: place.node + 1, buffer: place.buffer + 1, view: place.view };
  const fields: Column[] = [];
  for (const field of childrenOf(type)) {
    fields.push(await readColumn(field.name, field.type, inside, range, source));
    inside = placeAfter(field.type, inside, source.buffers.header.variadicBufferCounts);
  }
  const values = Array.from({ length: range[1] - range[0] }, (_, row) =>
    Object.fromEntries(fields.map((field) => [field.name, jsonAt(field, row)])),
  );
  return { name, type: 'json', values };
}

function jsonAt(column: Column, row: number): unknown {
  if (column.nulls?.[row]) return null;
  if (column.type === 'list') {
    const [from, to] = [column.offsets[row] as number, column.offsets[row + 1] as number];
    return Array.from({ length: to - from }, (_, i) => jsonAt(column.child, from + i));
  }
  const value: unknown = column.values[row];
  if (column.type === 'bool') return value === 1;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (typeof value !== 'bigint') return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
}

async function asTexts(
  name: string,
  type: DataType,
  buffer: number,
  range: readonly [number, number],
  buffers: BatchBuffers,
): Promise<Column> {
  if (type.typeId === Type.Decimal) {
    const { scale, bitWidth } = type as unknown as { scale: number; bitWidth: number };
    const width = bitWidth / 8;
    const bytes = await buffers.bytes(buffer, range[0] * width, range[1] * width);
    const values = Array.from({ length: range[1] - range[0] }, (_, i) =>
      decimalText(bytes.subarray(i * width, (i + 1) * width), scale),
    );
    return { name, type: 'string', values };
  }
  const { unit, bitWidth, timezone } = type as unknown as {
    unit: number;
    bitWidth?: number;
    timezone?: string;
  };
  const isShort = type.typeId === Type.Date ? unit === 0 : bitWidth === 32;
  const { values } = await numbers(name, isShort ? 'int32' : 'int64', buffer, range, buffers);
  const textOf = (value: number | bigint): string => {
    if (type.typeId === Type.Date) return dateText(Number(value), unit === 0);
    return type.typeId === Type.Time
      ? timeText(BigInt(value), unit)
      : timestampText(BigInt(value), unit, Boolean(timezone));
  };
  return { name, type: 'string', values: Array.from(values as ArrayLike<number | bigint>, textOf) };
}
