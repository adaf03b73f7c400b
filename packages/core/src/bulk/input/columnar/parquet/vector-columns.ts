/** Vectors of DuckDB as columns: each piece is appended to what the chunk has so far. */
import type { NumericValues } from '../../../columns.js';
import {
  type GrowingColumn,
  GrowingLists,
  GrowingNumbers,
  GrowingValues,
  type Validity,
} from '../growing-column.js';
import { ListVector, numbersOf, type Vector, validityOf } from './duckdb.js';
import type { Form } from './parquet-types.js';

/** @param expected rows; more are taken too */
export function growingColumn(name: string, form: Form, expected: number): GrowingColumn {
  switch (form.kind) {
    case 'numbers':
      return new GrowingNumbers(name, form.type, expected);
    case 'strings':
      return new GrowingValues(name, 'string', expected);
    case 'bytes':
      return new GrowingValues(name, 'bytes', expected);
    case 'json':
      return new GrowingValues(name, 'json', expected);
    case 'list':
      return new GrowingLists(name, growingColumn('item', form.child, expected), expected);
  }
}

/** Rows [from, to) of a vector. */
export function appendVector(
  column: GrowingColumn,
  form: Form,
  vector: Vector,
  from: number,
  to: number,
): void {
  if (form.kind === 'numbers') {
    const values = numbersOf(vector).subarray(from, to) as NumericValues;
    (column as GrowingNumbers).append(values, validityFrom(vector, from));
  } else if (form.kind === 'list') {
    appendLists(column as GrowingLists, form.child, vector, from, to);
  } else {
    const read = form.kind === 'json' ? jsonItem : form.kind === 'bytes' ? bytesItem : textItem;
    for (let row = from; row < to; row++) (column as GrowingValues).add(read(vector, row));
  }
}

function appendLists(column: GrowingLists, child: Form, vector: Vector, from: number, to: number): void {
  if (!(vector instanceof ListVector)) throw new Error(`a vector of ${vector.type} holds no lists`);
  const validity = validityFrom(vector, from);
  const lengths = new Uint32Array(to - from);
  // Lists that lie one behind the other, as they nearly always do, are one piece.
  let begin = 0;
  let end = 0;
  const flush = (): void => {
    if (end > begin) appendVector(column.child, child, vector.childVector, begin, end);
  };
  for (let row = from; row < to; row++) {
    if (!isValid(validity, row - from)) continue;
    const offset = vector.getEntryOffset(row);
    const length = vector.getEntryLength(row);
    lengths[row - from] = length;
    if (length === 0) continue;
    if (offset !== end) {
      flush();
      begin = offset;
    }
    end = offset + length;
  }
  flush();
  column.append(lengths, validity);
}

function validityFrom(vector: Vector, from: number): Validity | null {
  const validity = validityOf(vector);
  return validity && { bits: validity.bits, offset: validity.offset + from };
}

function isValid(validity: Validity | null, index: number): boolean {
  if (!validity) return true;
  const bit = validity.offset + index;
  return (((validity.bits[bit >> 3] as number) >> (bit & 7)) & 1) === 1;
}

function textItem(vector: Vector, row: number): unknown {
  return vector.getItem(row);
}

function jsonItem(vector: Vector, row: number): unknown {
  const text = vector.getItem(row) as string | null;
  return text === null ? null : JSON.parse(text);
}

function bytesItem(vector: Vector, row: number): unknown {
  const blob = vector.getItem(row) as { bytes: Uint8Array } | null;
  // The memory is that of the vector, which ends with it.
  return blob === null ? null : new Uint8Array(blob.bytes);
}
