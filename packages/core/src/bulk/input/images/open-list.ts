/** A list of images, opened for the coordinator: its pieces are lines, which lead runners to the images. */
import { dirname } from 'node:path';
import type { ColumnInfo } from '../../columns.js';
import type { OpenedInput, OpenOptions } from '../bulk-input.js';
import { parseLine } from '../text/json-lines.js';
import { isRejected } from '../text/line-kinds.js';
import { firstRecords, openText } from '../text/open-text.js';
import { LineScanner } from '../text/record-scanner.js';
import { TextInput } from '../text/text-input.js';
import { type ImageReference, parseReference } from './list-lines.js';

/** Of a piece: each line is an image in the memory of a runner. */
const MOST_ROWS = 256;

/** @throws RemudaError file_not_found, invalid_file */
export async function openList(options: OpenOptions, totalRows?: number): Promise<OpenedInput> {
  const { path, compression, read } = options;
  const text = await openText(path, compression);
  try {
    const records = await firstRecords(text, new LineScanner());
    const references = records
      .map((record) => parseReference(record.text))
      .filter((found) => typeof found !== 'string');
    const rejected = read.rejected ?? isRejectedLine(records[0]?.text);
    return new TextInput(text.file, text.source, compression, () => new LineScanner(), {
      columns: columnsOf(references),
      read: { ...read, base: read.base ?? dirname(path), ...(rejected && { rejected }) },
      start: { byte: text.start, line: 1 },
      travels: true,
      mostRows: MOST_ROWS,
      ...(totalRows !== undefined && { totalRows }),
    });
  } catch (error) {
    await text.source.close();
    throw error;
  }
}

function isRejectedLine(text = ''): boolean {
  const line = text.startsWith('{') ? parseLine(text) : '';
  return typeof line !== 'string' && isRejected(line);
}

/** Those that the first lines have. */
function columnsOf(references: readonly ImageReference[]): ColumnInfo[] {
  const columns: ColumnInfo[] = [{ name: 'image', type: 'bytes' }];
  if (references.some(({ customId }) => customId !== null))
    columns.push({ name: 'custom_id', type: 'string' });
  if (references.some(({ kind }) => kind === 'path')) columns.push({ name: 'path', type: 'string' });
  if (references.some(({ kind }) => kind !== 'path')) columns.push({ name: 'url', type: 'string' });
  return columns;
}
