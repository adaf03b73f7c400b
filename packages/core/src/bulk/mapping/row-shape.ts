/**
 * The shape of a row from the model's metadata and the columns that make it. An axis whose size only the rows tell is -1:
 * lists may differ in length.
 */
import type { SignatureTensor } from '@remuda/schemas';
import type { ColumnInfo } from '../columns.js';

/** Size of an axis that each row has for itself. */
export const OWN_SIZE = -1;

export type Shaped = { rowShape: number[] } | { expected: string; received: string };

/** Sizes and names of the axes of a row. */
export function rowAxes({ shape, batch_axis }: SignatureTensor): (number | string)[] {
  return shape.filter((_, axis) => axis !== batch_axis);
}

/** "FP32 [30] a row" */
export function rowText(input: SignatureTensor): string {
  if (input.kind === 'image') return 'an image a row';
  const axes = rowAxes(input).map((axis) => (axis === '' ? '?' : axis));
  return `${input.datatype} ${axes.length === 0 ? 'value' : `[${axes.join(', ')}]`} a row`;
}

export function shapeOfRow(input: SignatureTensor, columns: readonly ColumnInfo[]): Shaped {
  if (input.kind === 'image') return oneColumn(input, columns) ?? { rowShape: [] };
  const axes = rowAxes(input);
  const open = axes.filter((axis) => typeof axis === 'string').length;
  const fixed = axes.reduce<number>((size, axis) => (typeof axis === 'number' ? size * axis : size), 1);
  const [first] = columns;
  if (columns.length === 1 && first && mayBeList(first)) {
    const scalar = axes.length === 0 && first.type?.startsWith('list');
    if (scalar) return { expected: `one column of values (${rowText(input)})`, received: describe(first) };
    return { rowShape: axes.map((axis) => (typeof axis === 'number' ? axis : OWN_SIZE)) };
  }
  const list = columns.find(({ type }) => type?.startsWith('list'));
  if (list) {
    return {
      expected: 'columns of single values where several are stacked, or one column of lists alone',
      received: describe(list),
    };
  }
  if (open === 0) return stacked(input, columns, fixed, axes as number[]);
  if (open > 1) {
    return {
      expected: `one column of nested lists, since ${open} axes of ${rowText(input)} have no fixed size`,
      received: `${columns.length} columns`,
    };
  }
  if (columns.length % fixed !== 0 || columns.length === 0) {
    return { expected: `a multiple of ${fixed} columns (${rowText(input)})`, received: counted(columns) };
  }
  return { rowShape: axes.map((axis) => (typeof axis === 'number' ? axis : columns.length / fixed)) };
}

function stacked(
  input: SignatureTensor,
  columns: readonly ColumnInfo[],
  wanted: number,
  rowShape: number[],
): Shaped {
  if (columns.length === wanted) return { rowShape };
  const orList = rowShape.length > 0 ? `, or one column of lists of ${wanted}` : '';
  const many = wanted === 1 ? '1 column' : `${wanted} columns`;
  return { expected: `${many} (${rowText(input)})${orList}`, received: counted(columns) };
}

function oneColumn(input: SignatureTensor, columns: readonly ColumnInfo[]): Shaped | undefined {
  if (columns.length === 1) return undefined;
  return { expected: `one column (${rowText(input)})`, received: counted(columns) };
}

/** One whose type is not known may be. */
function mayBeList({ type }: ColumnInfo): boolean {
  return type === null || type === 'json' || type.startsWith('list');
}

function counted(columns: readonly ColumnInfo[]): string {
  const [only] = columns;
  if (columns.length === 1 && only) return `1 column, ${describe(only)}`;
  return `${columns.length} columns`;
}

/** "x" of type float32 */
export function describe({ name, type }: ColumnInfo): string {
  return type === null ? `"${name}"` : `"${name}" of type ${type}`;
}
