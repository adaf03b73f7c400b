/** Files of rows in a folder of their own, cut and read as a job would. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ItemError } from '@remuda/schemas';
import type { Column } from '../columns.js';
import {
  type CutLimits,
  INPUT_START,
  type InputPosition,
  type OpenedInput,
  type OpenOptions,
  type Piece,
} from './bulk-input.js';
import { openInput } from './open-input.js';
import { createRowReader } from './row-reader.js';

export const LARGE: CutLimits = { rows: 1_000_000, multipleOf: 1, bytes: 1e9 };

export interface ReadRows {
  rows: Array<Record<string, unknown>>;
  /** By row of the file. */
  failures: Map<number, ItemError>;
  raw: unknown[];
  rowNumbers: number[];
  types: Record<string, string>;
}

export class InputFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async make(): Promise<InputFolder> {
    return new InputFolder(await mkdtemp(join(tmpdir(), 'remuda-input-')));
  }

  async write(name: string, content: string | Uint8Array): Promise<string> {
    const path = join(this.path, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    return path;
  }

  remove(): Promise<void> {
    return rm(this.path, { recursive: true, force: true });
  }
}

export async function piecesOf(
  input: OpenedInput,
  limits = LARGE,
  from: InputPosition = INPUT_START,
): Promise<Piece[]> {
  const pieces: Piece[] = [];
  for (let at = from; ; ) {
    const piece = await input.cut(at, limits);
    if (!piece) return pieces;
    pieces.push(piece);
    at = piece.next;
  }
}

/** All rows of the pieces, in their order. */
export async function rowsOf(
  input: Pick<OpenedInput, 'read'>,
  pieces: readonly Piece[],
  columns: string[] | null = null,
): Promise<ReadRows> {
  const reader = createRowReader();
  const all: ReadRows = { rows: [], failures: new Map(), raw: [], rowNumbers: [], types: {} };
  try {
    for (const piece of pieces) {
      const block = await reader.read({ ...piece, read: input.read, columns }, piece.payload);
      for (const [row, error] of block.failures) all.failures.set(all.rows.length + row, error);
      for (const column of block.columns) all.types[column.name] = column.type;
      for (let row = 0; row < block.rows; row += 1) {
        all.raw.push(block.rawOf?.(row));
        all.rowNumbers.push(block.rowNumbers?.[row] ?? piece.firstRow + row);
        all.rows.push(Object.fromEntries(block.columns.map((column) => [column.name, valueAt(column, row)])));
      }
    }
  } finally {
    await reader.close();
  }
  return all;
}

export async function readFile(
  path: string,
  read: OpenOptions['read'],
  {
    compression = 'none',
    limits = LARGE,
    columns = null,
  }: { compression?: OpenOptions['compression']; limits?: CutLimits; columns?: string[] | null } = {},
): Promise<ReadRows & { input: OpenedInput; pieces: Piece[] }> {
  const input = await openInput({ path, read, compression });
  try {
    const pieces = await piecesOf(input, limits);
    return { ...(await rowsOf(input, pieces, columns)), input, pieces };
  } finally {
    await input.close();
  }
}

export function valueAt(column: Column, row: number): unknown {
  if (column.nulls?.[row]) return null;
  if (column.type !== 'list') return column.type === 'bool' ? column.values[row] === 1 : column.values[row];
  const { offsets, child } = column;
  const from = offsets[row] as number;
  const to = offsets[row + 1] as number;
  return Array.from({ length: to - from }, (_, i) => valueAt(child, from + i));
}
