/**
 * The first rows of an input as a small input of their own. Rows with columns become lines of JSON, whatever they came
 * from; lines that are requests, and references of images, stay as they are.
 */
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RowBlock } from '@remuda/core/bulk/columns';
import { INPUT_START, type OpenedInput, type Piece } from '@remuda/core/bulk/input/bulk-input';
import { createRowReader } from '@remuda/core/bulk/input/row-reader';
import type { DescribedMapping } from '@remuda/core/bulk/mapping/describe-mapping';
import { columnJson } from '@remuda/core/bulk/output/json-values';
import type { BulkFormat } from '@remuda/schemas';
import { firstImages, imageLines } from './image-lines.js';
import type { ScorePlan } from './score-plan.js';

export interface Sample {
  rows: number;
  /** Of the input that they stand for. */
  bytes: number;
  /** There are no more rows than these. */
  whole: boolean;
  path: string;
  format: BulkFormat;
  map: Record<string, string> | undefined;
  idColumn: string | undefined;
}

export interface SampleOptions {
  plan: ScorePlan;
  input: OpenedInput;
  mapping: DescribedMapping;
  /** Where it is written. */
  folder: string;
  /** Name of the column that images are sent in; null: who scores them reads them where they lie. */
  imageColumn: string | null;
}

const MOST_ROWS = 256;
const MOST_BYTES = 8 * 2 ** 20;

export async function takeSample(options: SampleOptions): Promise<Sample | null> {
  const { input, plan, mapping } = options;
  if (plan.input.kind === 'images') return imageSample(plan.input.path, options);
  const piece = await input.cut(INPUT_START, { rows: MOST_ROWS, multipleOf: 1, bytes: MOST_BYTES });
  if (piece === null) return null;
  const asTheyAre = input.read.format === 'list' || (input.read.lines ?? 'columns') !== 'columns';
  const text = asTheyAre ? await linesOf(input, piece) : await rowsAsLines(input, piece);
  const format = input.read.format === 'list' ? ('list' as const) : ('jsonl' as const);
  return {
    ...(await written(text, format, options.folder)),
    rows: piece.rows,
    bytes: piece.bytes,
    whole: (await input.cut(piece.next, { rows: 1, multipleOf: 1, bytes: 1 })) === null,
    map: asTheyAre ? undefined : Object.fromEntries(mapping.inputs.map((one) => [one.input, one.columns])),
    idColumn: mapping.idColumn ?? undefined,
  };
}

async function written(text: string | Buffer, format: BulkFormat, folder: string) {
  const path = join(folder, format === 'list' ? 'sample.txt' : 'sample.jsonl');
  await writeFile(path, text);
  return { path, format };
}

async function linesOf(input: OpenedInput, piece: Piece): Promise<Buffer> {
  return Buffer.from(piece.payload ?? (await input.payloadOf(piece)));
}

async function rowsAsLines(input: OpenedInput, piece: Piece): Promise<string> {
  const reader = createRowReader();
  try {
    const block = await reader.read({ ...piece, read: input.read, columns: null }, piece.payload);
    return linesOfBlock(block);
  } finally {
    await reader.close();
  }
}

function linesOfBlock({ rows, columns, failures }: RowBlock): string {
  const cells = columns.map((column) => ({ name: JSON.stringify(column.name), cell: columnJson(column) }));
  let text = '';
  for (let row = 0; row < rows; row++) {
    if (failures.has(row)) continue;
    text += `{${cells.map(({ name, cell }) => `${name}:${cell(row) ?? 'null'}`).join(',')}}\n`;
  }
  return text;
}

async function imageSample(place: string, { folder, imageColumn }: SampleOptions): Promise<Sample | null> {
  const paths = await firstImages(place, MOST_ROWS);
  if (paths.length === 0) return null;
  const whole = paths.length < MOST_ROWS;
  const facts = { rows: paths.length, bytes: await bytesOf(paths), whole, idColumn: undefined };
  if (imageColumn === null)
    return { ...(await written(`${paths.join('\n')}\n`, 'list', folder)), ...facts, map: undefined };
  const { lines } = await imageLines(place, async () => imageColumn, MOST_ROWS);
  let text = '';
  for await (const line of lines) text += line;
  return { ...(await written(text, 'jsonl', folder)), ...facts, map: { [imageColumn]: imageColumn } };
}

async function bytesOf(paths: readonly string[]): Promise<number> {
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path)).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
