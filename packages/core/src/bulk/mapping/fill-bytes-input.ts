/** An input of texts or image files from its columns: elements with their lengths before them, row behind row. */
import { isUtf8 } from 'node:buffer';
import { elementCount, InvalidInputError, nestedShape } from '@remuda/schemas';
import { imageFile } from '../../requests/image-text.js';
import type { Column } from '../columns.js';
import { failNulls } from './fill-numbers-input.js';
import type { FilledInput, InputColumns } from './filled-input.js';
import { listRow } from './list-rows.js';
import type { RowFailures } from './row-failures.js';
import { OWN_SIZE } from './row-shape.js';
import { shownValue } from './text-numbers.js';

export function fillBytesInput(given: InputColumns, failures: RowFailures): FilledInput {
  const { input, columns, rowShape, rows } = given;
  for (const column of columns) failNulls(column, failures);
  const read = input.kind === 'image' ? imageElement : textElement;
  const out = new ElementBuffer();
  const starts = new Float64Array(rows + 1);
  const shapes: (readonly number[])[] = [];
  for (let row = 0; row < rows; row++) {
    shapes.push(failures.out[row] ? rowShape : addRow(out, row, given, read, failures));
    starts[row + 1] = out.length;
  }
  return {
    input,
    bytes: out.bytes(),
    startOf: (row) => starts[row] as number,
    shapeOf: (row) => shapes[row] as number[],
    ragged: rowShape.includes(OWN_SIZE),
  };
}

type ReadElement = (value: unknown) => Uint8Array | { expected: string; received?: string };

/** @returns its shape */
function addRow(
  out: ElementBuffer,
  row: number,
  { columns, rowShape }: InputColumns,
  read: ReadElement,
  failures: RowFailures,
): readonly number[] {
  const shape = shapeOf(columns, row, rowShape);
  const [first] = columns as [Column];
  if (!shape) {
    failures.add(row, first.name, `texts of shape [${rowShape.join(', ')}]`, 'others');
    return rowShape;
  }
  const begin = out.length;
  for (const column of columns) {
    for (const value of valuesAt(column, row)) {
      const element = read(value);
      if (element instanceof Uint8Array) out.add(element);
      else {
        failures.add(row, column.name, element.expected, element.received ?? shown(column, row, value));
        out.cut(begin);
        return rowShape;
      }
    }
  }
  return shape;
}

function shown(column: Column, row: number, value: unknown): string {
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : shownValue(column, row);
}

function shapeOf(columns: readonly Column[], row: number, wanted: readonly number[]): number[] | null {
  if (columns.length > 1) return elementCount(wanted) === columns.length ? [...wanted] : null;
  const [only] = columns as [Column];
  const own = ownShape(only, row);
  if (!own) return null;
  if (own.length === wanted.length && own.every((size, i) => wanted[i] === size || wanted[i] === OWN_SIZE))
    return own;
  const closed = wanted.map((size) => (size === OWN_SIZE ? (own.length === 0 ? 1 : OWN_SIZE) : size));
  return own.length <= 1 && elementCount(closed) === elementCount(own) ? closed : null;
}

function ownShape(column: Column, row: number): number[] | null {
  if (column.type === 'json') return nestedShape(column.values[row]);
  if (column.type !== 'list') return [];
  const list = listRow(column, row);
  return 'ragged' in list ? null : list.shape;
}

function valuesAt(column: Column, row: number): readonly unknown[] {
  if (column.type === 'json') {
    const value = column.values[row];
    return Array.isArray(value) ? value.flat(Number.POSITIVE_INFINITY) : [value];
  }
  if (column.type !== 'list') return [column.values[row]];
  const list = listRow(column, row);
  if (!('leaf' in list) || list.leaf.type === 'list') return [];
  return Array.from(list.leaf.values.slice(list.from, list.to) as ArrayLike<unknown>);
}

/** ONNX Runtime cuts strings at NUL and reads them as UTF-8: what would not arrive unchanged is refused. */
function textElement(value: unknown): ReturnType<ReadElement> {
  if (value instanceof Uint8Array) {
    if (!isUtf8(value)) return { expected: 'UTF-8 text', received: 'bytes that are not UTF-8' };
    if (value.includes(0)) return { expected: 'text without NUL characters', received: 'a NUL' };
    return value;
  }
  if (typeof value !== 'string') return { expected: 'a string (BYTES)' };
  if (value.includes('\0')) return { expected: 'text without NUL characters', received: 'a NUL' };
  if (/\p{Surrogate}/u.test(value)) {
    return { expected: 'well-formed Unicode (BYTES)', received: 'half of a surrogate pair' };
  }
  return Buffer.from(value, 'utf8');
}

/** A file, or its base64. */
function imageElement(value: unknown): ReturnType<ReadElement> {
  if (value instanceof Uint8Array) {
    return value.byteLength > 0 ? value : { expected: 'an image file', received: '0 bytes' };
  }
  try {
    const file = imageFile(value, []);
    return file.byteLength > 0 ? file : { expected: 'an image file', received: '0 bytes' };
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const [finding] = error.violations;
    return { expected: finding?.expected ?? 'an image file', received: finding?.received };
  }
}

/** Elements one behind the other in memory that grows. */
class ElementBuffer {
  #buffer = Buffer.allocUnsafeSlow(64 * 1024);
  length = 0;

  add(element: Uint8Array): void {
    const end = this.length + 4 + element.byteLength;
    if (end > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(end, this.#buffer.length * 2));
      larger.set(this.#buffer.subarray(0, this.length));
      this.#buffer = larger;
    }
    this.#buffer.writeUInt32LE(element.byteLength, this.length);
    this.#buffer.set(element, this.length + 4);
    this.length = end;
  }

  cut(length: number): void {
    this.length = length;
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.length);
  }
}
