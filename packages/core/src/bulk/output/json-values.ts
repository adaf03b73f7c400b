/**
 * Values of rows as JSON text, by the rules of the API's tensors: whole numbers beyond 2^53, NaN and infinities are
 * strings; BYTES that are no UTF-8 are {"b64": …}.
 */
import { isUtf8 } from 'node:buffer';
import { elementCount } from '@remuda/schemas';
import type { Column, NumericValues } from '../columns.js';
import type { OutputRows } from './output-rows.js';

/** JSON of a row's value; undefined: it has none. */
export type JsonCell = (row: number) => string | undefined;

export function jsonOfBytes(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(buffer)
    ? JSON.stringify(buffer.toString('utf8'))
    : JSON.stringify({ b64: buffer.toString('base64') });
}

/** JSON of an element by its index. */
export function elementJson({ elements }: OutputRows): (index: number) => string {
  const { values } = elements;
  if (elements.kind === 'bytes') return (i) => jsonOfBytes(elements.values[i] as Uint8Array);
  return numberJson(elements.type, values as NumericValues);
}

function numberJson(type: string, values: NumericValues): (index: number) => string {
  if (type === 'bool') return (i) => (values[i] === 1 ? 'true' : 'false');
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) return bigJson(values);
  return (i) => {
    const value = values[i] as number;
    if (Number.isFinite(value)) return Object.is(value, -0) ? '-0' : String(value);
    return `"${value}"`;
  };
}

/** Of two halves: a BigInt for each number would cost as much as all the rest of a line. */
function bigJson(values: BigInt64Array | BigUint64Array): (index: number) => string {
  const halves = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
  const signed = values instanceof BigInt64Array;
  return (i) => {
    const high = halves[2 * i + 1] as number;
    const number = (signed ? high | 0 : high) * 2 ** 32 + (halves[2 * i] as number);
    return Number.isSafeInteger(number) ? String(number) : `"${values[i]}"`;
  };
}

/** An output of each row: the element where it is a scalar, else lists as its shape says. */
export function outputJson(rows: OutputRows, scalar: boolean): JsonCell {
  const element = elementJson(rows);
  return (row) => {
    const shape = rows.shapeOf(row);
    if (!shape) return undefined;
    const start = rows.starts[row] as number;
    return scalar ? element(start) : nestedJson(element, start, shape, 0);
  };
}

/** All elements of a row in one list, as tensors of the API have them. */
export function flatJson(rows: OutputRows, row: number): string {
  const element = elementJson(rows);
  return nestedJson(element, rows.starts[row] as number, [elementCount(rows.shapeOf(row) ?? [])], 0);
}

function nestedJson(
  element: (index: number) => string,
  start: number,
  shape: readonly number[],
  axis: number,
): string {
  const count = shape[axis] as number;
  const last = axis === shape.length - 1;
  const step = last ? 1 : elementCount(shape.slice(axis + 1));
  let text = '[';
  for (let i = 0; i < count; i++) {
    if (i > 0) text += ',';
    text += last ? element(start + i) : nestedJson(element, start + i * step, shape, axis + 1);
  }
  return `${text}]`;
}

/** A column of the input: null where it has no value. */
export function columnJson(column: Column): JsonCell {
  const { nulls } = column;
  const present = presentJson(column);
  return (row) => (nulls?.[row] === 1 ? 'null' : present(row));
}

function presentJson(column: Column): (row: number) => string {
  switch (column.type) {
    case 'string':
    case 'json':
      return (row) => JSON.stringify(column.values[row] ?? null, exactBigInts);
    case 'bytes':
      return (row) => {
        const bytes = column.values[row];
        return bytes ? JSON.stringify({ b64: Buffer.from(bytes).toString('base64') }) : 'null';
      };
    case 'list': {
      const child = columnJson(column.child);
      return (row) => {
        const items: string[] = [];
        for (let i = column.offsets[row] as number; i < (column.offsets[row + 1] as number); i++)
          items.push(child(i) ?? 'null');
        return `[${items.join(',')}]`;
      };
    }
    default:
      return numberJson(column.type, column.values);
  }
}

/** What JSON.stringify would refuse or lose. */
export function exactBigInts(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint')
    return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}
