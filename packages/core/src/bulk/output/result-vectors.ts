/** The answers of a chunk as the columns of a columnar output, in the order of its layout. */
import { isUtf8 } from 'node:buffer';
import { elementCount } from '@remuda/schemas';
import type { ChunkResult } from '../chunk.js';
import { NUMERIC_ARRAY } from '../numeric-types.js';
import { type FieldType, fieldTypeOf, list, NONE, number, TEXT } from './field-types.js';
import { columnVector } from './kept-vectors.js';
import type { NamedOutput, OutputLayout } from './output-layout.js';
import { failedRows, numericTypeOf, type OutputRows, outputRows } from './output-rows.js';
import { bytesVector, noValues, type Vector, validOf } from './vectors.js';

export interface Field {
  name: string;
  /** As far as it is known before any row has run. */
  type: FieldType;
  /** No row can be without a value. */
  required: boolean;
}

export function fieldsOf(layout: OutputLayout): Field[] {
  const nullable = (name: string, type: FieldType): Field => ({ name, type, required: false });
  return [
    { name: layout.row, type: number('int64'), required: true },
    ...(layout.id === null ? [] : [nullable(layout.id, TEXT)]),
    // A kept column has the type of its values; its declared one is for files that have none.
    ...layout.kept.map(({ name }) => nullable(name, NONE)),
    ...layout.outputs.map((output) => nullable(output.column, outputType(output))),
    nullable(layout.errorCode, TEXT),
    nullable(layout.errorMessage, TEXT),
  ];
}

/** Types of kept columns that no row has told. */
export function declaredType(layout: OutputLayout, name: string): FieldType {
  return fieldTypeOf(layout.kept.find((kept) => kept.name === name)?.type);
}

/** BYTES are text, unless some row holds what is not UTF-8. */
function outputType({ datatype, rowShape, scalar }: NamedOutput): FieldType {
  const numeric = numericTypeOf(datatype);
  const element = numeric === null ? NONE : number(numeric);
  return scalar ? element : rowShape.reduce((inner) => list(inner), element);
}

export function vectorsOf(result: ChunkResult, layout: OutputLayout): Vector[] {
  const failed = failedRows(result);
  return [
    rowNumbers(result),
    ...(layout.id === null ? [] : [idVector(result)]),
    ...layout.kept.map(({ name, type }) => {
      const column = result.kept.find((one) => one.name === name);
      return column ? columnVector(column, result.rows, type === null) : noValues(result.rows);
    }),
    ...layout.outputs.map((output) => outputVector(result, output, failed)),
    ...errorVectors(result),
  ];
}

/** Two halves for each number: a BigInt for each would cost five times as much. */
function rowNumbers({ firstRow, rows, rowNumbers: numbers }: ChunkResult): Vector {
  const halves = new Uint32Array(rows * 2);
  for (let i = 0; i < rows; i++) {
    const row = numbers?.[i] ?? firstRow + i;
    halves[2 * i] = row >>> 0;
    halves[2 * i + 1] = Math.floor(row / 2 ** 32);
  }
  return {
    kind: 'number',
    type: 'int64',
    length: rows,
    valid: null,
    values: new BigInt64Array(halves.buffer),
  };
}

function idVector({ ids, rows }: ChunkResult): Vector {
  return ids ? bytesVector('text', ids) : noValues(rows);
}

function errorVectors({ rows, failures }: ChunkResult): Vector[] {
  if (failures.length === 0) return [noValues(rows), noValues(rows)];
  const codes = new Array<string | null>(rows).fill(null);
  const messages = new Array<string | null>(rows).fill(null);
  for (const { index, error } of failures) {
    codes[index] = error.code;
    messages[index] = error.message;
  }
  return [bytesVector('text', codes), bytesVector('text', messages)];
}

function outputVector(result: ChunkResult, output: NamedOutput, failed: Uint8Array | null): Vector {
  const rows = outputRows(result, output, failed);
  if (!rows) return noValues(result.rows);
  const valid = validOf(result.rows, undefined, failed);
  if (output.scalar) return elementsVector(rows, result.rows, valid);
  const live = liveElements(rows, result.rows, failed);
  return nested(rows, result.rows, valid, output.rowShape.length, live);
}

/** One element a row; a row without any holds nothing. */
function elementsVector(rows: OutputRows, length: number, valid: Uint8Array | null): Vector {
  const { elements, starts } = rows;
  const whole = starts[length] === length;
  if (elements.kind === 'bytes')
    return textual(
      Array.from({ length }, (_, i) =>
        valid?.[i] === 0 ? null : (elements.values[starts[i] as number] as Uint8Array),
      ),
    );
  let { values } = elements;
  if (!whole) {
    const spread = new NUMERIC_ARRAY[elements.type](length) as { [index: number]: number | bigint };
    for (let i = 0; i < length; i++)
      if (valid?.[i] !== 0) spread[i] = elements.values[starts[i] as number] as number | bigint;
    values = spread as never;
  }
  return { kind: 'number', type: elements.type, length, valid, values };
}

function textual(entries: readonly (Uint8Array | null)[]): Vector {
  const text = entries.every((entry) => entry === null || isUtf8(entry));
  return bytesVector(text ? 'text' : 'binary', entries);
}

/** The elements of rows that have not failed, as one vector. */
function liveElements({ elements, starts }: OutputRows, length: number, failed: Uint8Array | null): Vector {
  const runs: [from: number, to: number][] = [];
  for (let i = 0; i < length; i++) {
    if (failed?.[i] === 1) continue;
    const from = starts[i] as number;
    const to = starts[i + 1] as number;
    const last = runs.at(-1);
    if (last?.[1] === from) last[1] = to;
    else runs.push([from, to]);
  }
  if (elements.kind === 'bytes')
    return textual(runs.flatMap(([from, to]) => elements.values.slice(from, to)));
  const { type, values } = elements;
  const only = runs[0];
  if (runs.length === 1 && only)
    return { kind: 'number', type, length: only[1] - only[0], valid: null, values: values.subarray(...only) };
  const count = runs.reduce((sum, [from, to]) => sum + to - from, 0);
  const joined = new NUMERIC_ARRAY[type](count);
  let at = 0;
  for (const [from, to] of runs) {
    joined.set(values.subarray(from, to) as never, at);
    at += to - from;
  }
  return { kind: 'number', type, length: count, valid: null, values: joined };
}

/** Lists of lists around the elements, one for each axis of a row. */
function nested(
  rows: OutputRows,
  length: number,
  valid: Uint8Array | null,
  rank: number,
  elements: Vector,
): Vector {
  let inner = elements;
  for (let axis = rank - 1; axis >= 0; axis--) inner = listsOf(rows, length, axis, valid, inner);
  return inner;
}

function listsOf(
  rows: OutputRows,
  length: number,
  axis: number,
  valid: Uint8Array | null,
  child: Vector,
): Vector {
  const offsets: Uint32Array =
    axis === 0 ? new Uint32Array(length + 1) : new Uint32Array(countLists(rows, length, axis) + 1);
  let at = 0;
  for (let i = 0; i < length; i++) {
    const shape = rows.shapeOf(i);
    const lists = axis === 0 ? 1 : shape ? elementCount(shape.slice(0, axis)) : 0;
    const each = shape?.[axis] ?? 0;
    for (let one = 0; one < lists; one++, at++) offsets[at + 1] = (offsets[at] as number) + each;
  }
  return { kind: 'list', length: offsets.length - 1, valid: axis === 0 ? valid : null, offsets, child };
}

function countLists(rows: OutputRows, length: number, axis: number): number {
  let count = 0;
  for (let i = 0; i < length; i++) {
    const shape = rows.shapeOf(i);
    if (shape) count += elementCount(shape.slice(0, axis));
  }
  return count;
}
