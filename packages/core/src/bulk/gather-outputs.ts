/** The outputs of rows that ended in any order, as one column for each output, in the order of the rows. */
import {
  type Datatype,
  ELEMENT_BYTES,
  elementCount,
  joinBytesElements,
  type RawTensor,
} from '@remuda/schemas';
import type { OutputColumn } from './chunk.js';

/** Outputs of consecutive rows that have one shape. */
interface GatheredRows {
  row: number;
  rows: number;
  rowShape: number[];
  bytes: Uint8Array;
}

interface Gathered {
  name: string;
  datatype: Datatype;
  parts: GatheredRows[];
}

export class OutputGatherer {
  readonly #outputs = new Map<string, Gathered>();
  readonly #rows: number;

  constructor(rows: number) {
    this.#rows = rows;
  }

  /**
   * One output of rows [row, row + rows).
   * @param rowShape of each of them; their elements lie one behind the other in the tensor
   */
  add(row: number, rows: number, { name, datatype, bytes }: RawTensor, rowShape: number[]): void {
    let gathered = this.#outputs.get(name);
    if (!gathered) {
      gathered = { name, datatype, parts: [] };
      this.#outputs.set(name, gathered);
    }
    gathered.parts.push({ row, rows, rowShape, bytes });
  }

  /** In the order in which outputs were first given. */
  columns(): OutputColumn[] {
    return [...this.#outputs.values()].map((gathered) => columnOf(gathered, this.#rows));
  }
}

function columnOf({ name, datatype, parts }: Gathered, rows: number): OutputColumn {
  parts.sort((a, b) => a.row - b.row);
  const { rowShape: shape } = parts[0] as GatheredRows;
  const alike = parts.every(({ rowShape }) => sameShape(rowShape, shape));
  if (!alike) return raggedColumn(name, datatype, parts, rows);
  const bytes =
    datatype === 'BYTES'
      ? textsOf(parts, elementCount(shape), rows)
      : numbersOf(parts, elementCount(shape) * ELEMENT_BYTES[datatype], rows);
  return { name, datatype, shape, bytes };
}

function numbersOf(parts: readonly GatheredRows[], rowBytes: number, rows: number): Uint8Array {
  const only = parts[0] as GatheredRows;
  if (only.rows === rows) return only.bytes;
  const bytes = new Uint8Array(rowBytes * rows);
  for (const part of parts) bytes.set(part.bytes, part.row * rowBytes);
  return bytes;
}

const NO_TEXT = new Uint8Array(0);

/** Rows without an answer hold empty texts. */
function textsOf(parts: readonly GatheredRows[], each: number, rows: number): Uint8Array {
  const joined: Uint8Array[] = [];
  let row = 0;
  const fillTo = (next: number): void => {
    if (next > row) joined.push(joinBytesElements(new Array<Uint8Array>((next - row) * each).fill(NO_TEXT)));
    row = next;
  };
  for (const part of parts) {
    fillTo(part.row);
    joined.push(part.bytes);
    row += part.rows;
  }
  fillTo(rows);
  return Buffer.concat(joined);
}

function raggedColumn(
  name: string,
  datatype: Datatype,
  parts: readonly GatheredRows[],
  rows: number,
): OutputColumn {
  const shapes = new Array<number[] | null>(rows).fill(null);
  for (const { row, rows: count, rowShape } of parts) shapes.fill(rowShape, row, row + count);
  return { name, datatype, shape: null, shapes, bytes: Buffer.concat(parts.map(({ bytes }) => bytes)) };
}

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((dim, axis) => dim === b[axis]);
}
