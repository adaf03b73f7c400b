/**
 * An input of numbers from its columns: several stacked, one of single values, or one of lists. Rows are filled a tile at
 * a time, so that thirty columns become one tensor at about the speed of memory.
 */
import {
  type Datatype,
  ELEMENT_BYTES,
  elementCount,
  InvalidInputError,
  decodeTensor,
  describeValue,
  nestedShape,
  type SignatureTensor,
} from '@remuda/schemas';
import type { Column, NumericType, NumericValues } from '../columns.js';
import { evenInput, type FilledInput } from './filled-input.js';
import { type ListRow, listRow } from './list-rows.js';
import { fillNumbers, type NumberTarget, numberTarget, rangeText, TILE_ROWS } from './number-target.js';
import type { RowFailures } from './row-failures.js';
import { OWN_SIZE } from './row-shape.js';
import { shownValue, textToNumber } from './text-numbers.js';

type NumberDatatype = Exclude<Datatype, 'BYTES'>;

export interface InputColumns {
  input: SignatureTensor;
  columns: readonly Column[];
  rowShape: readonly number[];
  rows: number;
}

export function fillNumberInput(given: InputColumns, failures: RowFailures): FilledInput {
  for (const column of given.columns) failNulls(column, failures);
  const [only] = given.columns;
  if (given.columns.length === 1 && only && (only.type === 'list' || only.type === 'json')) {
    return fillLists(given, only, failures);
  }
  return fillStacked(given, failures);
}

export function failNulls({ name, nulls, ...column }: Column, failures: RowFailures): void {
  const expected = 'a value';
  if (nulls) for (let row = 0; row < nulls.length; row++) if (nulls[row]) failures.add(row, name, expected, 'null');
  if (column.type !== 'string' && column.type !== 'bytes' && column.type !== 'json') return;
  const { values } = column;
  for (let row = 0; row < values.length; row++) {
    if (values[row] === null || values[row] === undefined) failures.add(row, name, expected, 'null');
  }
}

function fillStacked({ input, columns, rowShape, rows }: InputColumns, failures: RowFailures): FilledInput {
  const datatype = input.datatype as NumberDatatype;
  const width = columns.length;
  const target = numberTarget(datatype, rows * width);
  for (let first = 0; first < rows; first += TILE_ROWS) {
    const count = Math.min(TILE_ROWS, rows - first);
    for (let c = 0; c < width; c++) {
      const column = columns[c] as Column;
      fillColumn(target, column, { from: first, count, at: first * width + c, stride: width }, (i) =>
        failures.add(first + i, column.name, rangeText(datatype), shownValue(column, first + i)),
      );
    }
  }
  // A single value that stands for a list is one of length 1.
  const shape = rowShape.map((size) => (size === OWN_SIZE ? 1 : size));
  if (elementCount(shape) !== width) {
    for (let row = 0; row < rows; row++) {
      failures.add(row, (columns[0] as Column).name, `a list of shape [${shape.join(', ')}]`, 'one value');
    }
  }
  return evenInput(input, target.bytes, width * ELEMENT_BYTES[datatype], shape);
}

interface Place {
  from: number;
  count: number;
  at: number;
  stride: number;
}

function fillColumn(target: NumberTarget, column: Column, place: Place, unfit: (i: number) => void): void {
  switch (column.type) {
    case 'string':
      return fillTexts(target, column.values, place, unfit);
    case 'json':
      return fillJson(target, column.values, place, unfit);
    case 'bytes':
    case 'list':
      for (let i = 0; i < place.count; i++) unfit(i);
      return;
    default:
      fillNumbers(target, column.type as NumericType, column.values as NumericValues, place, unfit);
  }
}

function fillTexts(
  target: NumberTarget,
  values: readonly (string | null)[],
  { from, count, at, stride }: Place,
  unfit: (i: number) => void,
): void {
  for (let i = 0, o = at; i < count; i++, o += stride) {
    const value = textToNumber(values[from + i] ?? '', target.datatype);
    const fits =
      value !== null && (typeof value === 'bigint' ? target.putBig(o, value) : target.put(o, value));
    if (!fits) unfit(i);
  }
}

/** Numbers, truth values, and what the API takes for a number: "NaN", long integers as texts. */
function fillJson(
  target: NumberTarget,
  values: readonly unknown[],
  { from, count, at, stride }: Place,
  unfit: (i: number) => void,
): void {
  for (let i = 0, o = at; i < count; i++, o += stride) {
    const value = values[from + i];
    const fits =
      typeof value === 'number'
        ? isExact(value, target.datatype) && target.put(o, value)
        : putOther(target, o, value);
    if (!fits) unfit(i);
  }
}

function putOther(target: NumberTarget, at: number, value: unknown): boolean {
  if (typeof value === 'boolean') return target.datatype === 'BOOL' && target.put(at, Number(value));
  if (typeof value !== 'string') return false;
  const number = textToNumber(value, target.datatype);
  if (number === null) return false;
  return typeof number === 'bigint' ? target.putBig(at, number) : target.put(at, number);
}

/** A whole number beyond 2^53 has lost digits when its JSON was read. */
function isExact(value: number, datatype: NumberDatatype): boolean {
  return (datatype !== 'INT64' && datatype !== 'UINT64') || Number.isSafeInteger(value) || !Number.isInteger(value);
}

/** Rows of one column of lists, each of the shape that is wanted or, where that is open, of its own. */
function fillLists({ input, rowShape, rows }: InputColumns, column: Column, failures: RowFailures): FilledInput {
  const datatype = input.datatype as NumberDatatype;
  const ragged = rowShape.includes(OWN_SIZE);
  const shapes: number[][] = [];
  const starts = new Float64Array(rows + 1);
  const fixed = ragged ? 0 : elementCount(rowShape);
  const found = new Array<ListRow | undefined>(rows);
  for (let row = 0; row < rows; row++) {
    const list = failures.out[row] ? undefined : wantedRow(column, row, rowShape, failures);
    found[row] = list;
    if (ragged) shapes.push(list ? list.shape : []);
    starts[row + 1] = (starts[row] as number) + (ragged ? (list ? elementCount(list.shape) : 0) : fixed);
  }
  const target = numberTarget(datatype, starts[rows] as number);
  for (let row = 0; row < rows; row++) {
    const list = found[row];
    if (list) fillList(target, starts[row] as number, column.name, row, list, failures);
  }
  const width = ELEMENT_BYTES[datatype];
  return {
    input,
    bytes: target.bytes,
    startOf: (row) => (starts[row] as number) * width,
    shapeOf: ragged ? (row) => shapes[row] as number[] : () => rowShape,
    ragged,
  };
}

function wantedRow(
  column: Column,
  row: number,
  rowShape: readonly number[],
  failures: RowFailures,
): ListRow | undefined {
  const list = column.type === 'json' ? jsonRow(column.values[row]) : listRow(column, row);
  if ('ragged' in list) {
    failures.add(row, column.name, 'lists of equal length on each level', list.ragged);
    return undefined;
  }
  const shape = fittingShape(list.shape, rowShape);
  if (shape) return { ...list, shape };
  const wanted = rowShape.map((size) => (size === OWN_SIZE ? 'any' : size)).join(', ');
  const expected =
    rowShape.length === 0
      ? 'one value'
      : rowShape.length === 1 && rowShape[0] !== OWN_SIZE
        ? `a list of ${rowShape[0]} values`
        : `lists of shape [${wanted}]`;
  failures.add(row, column.name, expected, receivedText(list.shape));
  return undefined;
}

function receivedText(shape: readonly number[]): string {
  if (shape.length === 0) return 'one value';
  return shape.length === 1 ? `${shape[0]} values` : `shape [${shape.join(', ')}]`;
}

/** Its own shape, or the wanted one where it is flat and has as many elements; a single value is a list of one. */
function fittingShape(shape: readonly number[], wanted: readonly number[]): number[] | null {
  if (shape.length === wanted.length && shape.every((size, i) => wanted[i] === size || wanted[i] === OWN_SIZE)) {
    return [...shape];
  }
  if (shape.length > 1) return null;
  const closed = wanted.map((size) => (size === OWN_SIZE && shape.length === 0 ? 1 : size));
  if (closed.includes(OWN_SIZE) || elementCount(closed) !== elementCount(shape)) return null;
  return closed;
}

function jsonRow(value: unknown): ListRow | { ragged: string } {
  return { shape: nestedShape(value), value };
}

function fillList(
  target: NumberTarget,
  at: number,
  name: string,
  row: number,
  list: ListRow,
  failures: RowFailures,
): void {
  const expected = rangeText(target.datatype);
  if ('value' in list) return fillNested(target, at, name, row, list, failures);
  const { leaf, from, to } = list;
  if (leaf.nulls) {
    for (let i = from; i < to; i++) if (leaf.nulls[i]) return failures.add(row, name, expected, `null at ${i - from}`);
  }
  fillColumn(target, leaf, { from, count: to - from, at, stride: 1 }, (i) =>
    failures.add(row, name, expected, `${shownValue(leaf, from + i)} at ${i}`),
  );
}

function fillNested(
  target: NumberTarget,
  at: number,
  name: string,
  row: number,
  { shape, value }: ListRow & { value: unknown },
  failures: RowFailures,
): void {
  try {
    const flat = Array.isArray(value) ? value : [value];
    const tensor = decodeTensor(name, { datatype: target.datatype, shape, data: flat }, []);
    target.bytes.set(tensor.bytes, at * ELEMENT_BYTES[target.datatype]);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const [finding] = error.violations;
    const place = finding?.path.replace(/^data/, '') ?? '';
    failures.add(
      row,
      name,
      finding?.expected ?? rangeText(target.datatype),
      `${finding?.received ?? describeValue(value)}${place === '' ? '' : ` at ${place}`}`,
    );
  }
}
