/**
 * Columns as tensors of a frame, and back: how rows travel where the file they come from cannot be read, and how kept
 * columns come back. Numbers are copied as they are; texts and JSON go as BYTES.
 */
import { joinBytesElements, type RawTensor, splitBytesElements } from '@remuda/schemas';
import { asElements } from '../harness/onnx-types.js';
import type { Column, NumericValues } from './columns.js';
import { DATATYPE_OF } from './numeric-types.js';

/** What a tensor does not say of a column. Plain JSON. */
export interface ColumnFacts {
  name: string;
  type: Column['type'];
  /** A tensor of marks follows that of the values. */
  nulls?: true;
  /** Of a list: its tensor holds the offsets. */
  child?: ColumnFacts;
}

export interface EncodedColumns {
  facts: ColumnFacts[];
  /** In the order of the facts: values (or offsets), marks where there are any, then those of the child. */
  tensors: RawTensor[];
}

export function encodeColumns(columns: readonly Column[]): EncodedColumns {
  const tensors: RawTensor[] = [];
  return { facts: columns.map((column) => encode(column, tensors)), tensors };
}

/** @param tensors those of encodeColumns, in their order; what lies behind them is left alone */
export function decodeColumns(facts: readonly ColumnFacts[], tensors: readonly RawTensor[]): Column[] {
  const next = tensors[Symbol.iterator]();
  return facts.map((fact) => decode(fact, next));
}

function encode(column: Column, tensors: RawTensor[]): ColumnFacts {
  const { name, type } = column;
  const nulls = nullsOf(column);
  tensors.push(valuesOf(column, `c${tensors.length}`));
  if (nulls)
    tensors.push({ name: `c${tensors.length}`, datatype: 'BOOL', shape: [nulls.length], bytes: nulls });
  const facts: ColumnFacts = nulls ? { name, type, nulls: true } : { name, type };
  return column.type === 'list' ? { ...facts, child: encode(column.child, tensors) } : facts;
}

/** Texts and bytes may be null without a mark; as a tensor they would be empty. */
function nullsOf(column: Column): Uint8Array | undefined {
  if (column.nulls || (column.type !== 'string' && column.type !== 'bytes')) return column.nulls;
  const values: readonly unknown[] = column.values;
  return values.includes(null) ? Uint8Array.from(values, (value) => (value === null ? 1 : 0)) : undefined;
}

function valuesOf(column: Column, name: string): RawTensor {
  switch (column.type) {
    case 'string':
      return bytesTensor(
        name,
        column.values.map((text) => Buffer.from(text ?? '', 'utf8')),
      );
    case 'bytes':
      return bytesTensor(
        name,
        column.values.map((bytes) => bytes ?? EMPTY),
      );
    case 'json':
      return bytesTensor(
        name,
        column.values.map((value) => Buffer.from(JSON.stringify(value ?? null), 'utf8')),
      );
    case 'list':
      return { name, datatype: 'UINT32', shape: [column.offsets.length], bytes: bytesUnder(column.offsets) };
    default:
      return {
        name,
        datatype: DATATYPE_OF[column.type],
        shape: [column.values.length],
        bytes: bytesUnder(column.values),
      };
  }
}

const EMPTY = new Uint8Array(0);

function bytesTensor(name: string, elements: Uint8Array[]): RawTensor {
  return { name, datatype: 'BYTES', shape: [elements.length], bytes: joinBytesElements(elements) };
}

function bytesUnder({ buffer, byteOffset, byteLength }: NumericValues | Uint32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function decode({ name, type, nulls: marked, child }: ColumnFacts, next: Iterator<RawTensor>): Column {
  const values = take(next);
  const nulls = marked && take(next).bytes;
  const base = nulls ? { name, nulls } : { name };
  const isNull = (row: number): boolean => nulls?.[row] === 1;
  switch (type) {
    case 'string':
      return {
        ...base,
        type,
        values: elementsOf(values).map((bytes, i) => (isNull(i) ? null : textOf(bytes))),
      };
    case 'bytes':
      return { ...base, type, values: elementsOf(values).map((bytes, i) => (isNull(i) ? null : bytes)) };
    case 'json':
      return {
        ...base,
        type,
        values: elementsOf(values).map((bytes) => JSON.parse(textOf(bytes)) as unknown),
      };
    case 'list': {
      const offsets = asElements('UINT32', values.bytes) as Uint32Array;
      return { ...base, type, offsets, child: decode(child as ColumnFacts, next) };
    }
    default:
      return { ...base, type, values: asElements(DATATYPE_OF[type], values.bytes) };
  }
}

function take(next: Iterator<RawTensor>): RawTensor {
  const { done, value } = next.next();
  if (done) throw new Error('columns were encoded with more tensors than there are');
  return value;
}

function elementsOf({ bytes }: RawTensor): Uint8Array[] {
  return splitBytesElements(bytes);
}

function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('utf8');
}
