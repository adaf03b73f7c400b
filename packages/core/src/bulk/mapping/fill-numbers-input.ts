/**
 * An input of numbers from its columns: several stacked, one of single values, or one of lists. Rows are filled a tile at
 * a time, so that thirty columns become one tensor at about the speed of memory.
 */
import { type Datatype, ELEMENT_BYTES, elementCount } from '@remuda/schemas';
import type { Column } from '../columns.js';
import { fillColumn } from './fill-column.js';
import { fillLists } from './fill-lists.js';
import { evenInput, type FilledInput, type InputColumns } from './filled-input.js';
import { interleave } from './interleave.js';
import { numberTarget, rangeText, TILE_ROWS } from './number-target.js';
import type { RowFailures } from './row-failures.js';
import { OWN_SIZE } from './row-shape.js';
import { shownValue } from './text-numbers.js';

type NumberDatatype = Exclude<Datatype, 'BYTES'>;

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
  if (nulls)
    for (let row = 0; row < nulls.length; row++) if (nulls[row]) failures.add(row, name, expected, 'null');
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
  const floats = datatype === 'FP32' ? allFloats(columns) : null;
  if (floats) interleave(new Float32Array(target.bytes.buffer), floats, rows);
  for (let first = 0; !floats && first < rows; first += TILE_ROWS) {
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

function allFloats(columns: readonly Column[]): Float32Array[] | null {
  const floats = columns.flatMap(({ type, ...column }) =>
    type === 'float32' ? [(column as { values: Float32Array }).values] : [],
  );
  return floats.length === columns.length ? floats : null;
}
