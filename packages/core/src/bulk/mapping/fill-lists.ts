/**
 * An input of numbers from one column of lists, or of JSON: each row of the shape that is wanted or, where an axis is
 * open, of its own.
 */
import {
  type Datatype,
  decodeTensor,
  describeValue,
  ELEMENT_BYTES,
  elementCount,
  InvalidInputError,
  nestedShape,
} from '@remuda/schemas';
import type { Column } from '../columns.js';
import { fillColumn } from './fill-column.js';
import type { FilledInput, InputColumns } from './filled-input.js';
import { type ListRow, listRow } from './list-rows.js';
import { type NumberTarget, numberTarget, rangeText } from './number-target.js';
import type { RowFailures } from './row-failures.js';
import { OWN_SIZE } from './row-shape.js';
import { shownValue } from './text-numbers.js';

type NumberDatatype = Exclude<Datatype, 'BYTES'>;

export function fillLists(
  { input, rowShape, rows }: InputColumns,
  column: Column,
  failures: RowFailures,
): FilledInput {
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
  if (
    shape.length === wanted.length &&
    shape.every((size, i) => wanted[i] === size || wanted[i] === OWN_SIZE)
  ) {
    return [...shape];
  }
  if (shape.length > 1 || wanted.length === 0) return null;
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
  if ('value' in list) {
    fillNested(target, at, name, row, list, failures);
    return;
  }
  const { leaf, from, to } = list;
  const empty = leaf.nulls?.subarray(from, to).indexOf(1) ?? -1;
  if (empty >= 0) {
    failures.add(row, name, expected, `null at ${empty}`);
    return;
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
