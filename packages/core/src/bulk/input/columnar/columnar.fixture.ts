/** Small Parquet and Arrow files for the tests of their readers, and rows read the way a coordinator and a runner do. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Column } from '../../columns.js';
import type { CutLimits, InputPosition, OpenedInput, Piece } from '../bulk-input.js';
import { type ColumnarReaderOptions, createColumnarReader } from './columnar-reader.js';
import { openColumnar } from './open-columnar.js';
import { connect, pathLiteral } from './parquet/duckdb.js';

export async function scratch(): Promise<{ path(name: string): string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'remuda-columnar-'));
  return {
    path: (name) => join(folder, name),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** @param rowGroup rows of a row group: a multiple of 2,048 */
export async function writeParquet(path: string, query: string, rowGroup = 2_048): Promise<void> {
  const connection = await connect();
  const target = pathLiteral(path).replaceAll(/\[([*?[])\]/g, '$1');
  await connection.run(`COPY (${query}) TO ${target} (FORMAT parquet, ROW_GROUP_SIZE ${rowGroup})`);
  connection.disconnectSync();
}

export async function writeBytes(path: string, bytes: Uint8Array): Promise<void> {
  await writeFile(path, bytes);
}

export function open(path: string, format: 'parquet' | 'arrow'): Promise<OpenedInput> {
  return openColumnar({ path, read: { format }, compression: 'none' });
}

export const LIMITS: CutLimits = { rows: 1_000, multipleOf: 8, bytes: 64 * 1024 * 1024 };

export async function pieces(input: OpenedInput, limits: CutLimits = LIMITS): Promise<Piece[]> {
  const found: Piece[] = [];
  let position: InputPosition = { row: 0 };
  for (;;) {
    const piece = await input.cut(position, limits);
    if (!piece) return found;
    found.push(piece);
    position = piece.next;
  }
}

export function readerOf(input: OpenedInput, options?: ColumnarReaderOptions) {
  const reader = createColumnarReader(options);
  return {
    read: async (
      { source, range, firstRow, rows }: Pick<Piece, 'source' | 'range' | 'firstRow' | 'rows'>,
      columns: readonly string[] | null,
      payload: Uint8Array | null = null,
    ): Promise<Column[]> => {
      const wanted = { source, range, firstRow, rows, columns, read: input.read };
      return (await reader.read(wanted, payload)).columns;
    },
    close: () => reader.close(),
  };
}

/** Rows [from, to) of a file, as one chunk. */
export async function readRows(
  path: string,
  format: 'parquet' | 'arrow',
  [from, to]: [number, number],
  columns: readonly string[] | null,
): Promise<Column[]> {
  const input = await open(path, format);
  const [first] = await pieces(input, { ...LIMITS, rows: 1, multipleOf: 1 });
  const reader = readerOf(input);
  const range = { kind: 'rows', from, to } as const;
  const piece = { source: first?.source ?? null, range, firstRow: from, rows: to - from };
  try {
    return await reader.read(piece, columns);
  } finally {
    await reader.close();
    await input.close();
  }
}

/** The values of a column as a person would write them. */
export function plain(column: Column | undefined): unknown[] {
  if (!column) return [];
  if (column.type === 'list') {
    const child = plain(column.child);
    return Array.from({ length: column.offsets.length - 1 }, (_, row) =>
      column.nulls?.[row] ? null : child.slice(column.offsets[row], column.offsets[row + 1]),
    );
  }
  return Array.from(column.values as ArrayLike<unknown>, (value, row) =>
    column.nulls?.[row] ? null : value,
  );
}
