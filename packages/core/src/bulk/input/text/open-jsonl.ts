/** A file of JSON objects, one a line, opened for the coordinator. Its lines are parsed in text-reader.ts. */
import { RemudaError } from '../../../errors.js';
import type { ColumnInfo } from '../../columns.js';
import type { OpenedInput, OpenOptions } from '../bulk-input.js';
import { type JsonObject, parseLine } from './json-lines.js';
import { columnsOf, type DetectedLines, detectLines, innerOf } from './line-kinds.js';
import { type FirstRecord, firstRecords, openText } from './open-text.js';
import { LineScanner } from './record-scanner.js';
import { TextInput } from './text-input.js';

/** @throws RemudaError file_not_found, invalid_file */
export async function openJsonl({ path, compression, read }: OpenOptions): Promise<OpenedInput> {
  const text = await openText(path, compression);
  try {
    const records = await firstRecords(text, new LineScanner());
    const objects = records
      .map((record) => parseLine(record.text))
      .filter((line) => typeof line !== 'string');
    const told = read.lines && { lines: read.lines, rejected: read.rejected ?? false };
    const kind = told ?? detected(path, records, objects);
    return new TextInput(text.file, text.source, compression, () => new LineScanner(), {
      columns: kind.lines === 'columns' ? plainColumns(objects, kind.rejected) : columnsOf(kind.lines),
      read: { ...read, lines: kind.lines, ...(kind.rejected && { rejected: true }) },
      start: { byte: text.start, line: 1 },
    });
  } catch (error) {
    await text.source.close();
    throw error;
  }
}

function detected(
  path: string,
  records: readonly FirstRecord[],
  objects: readonly JsonObject[],
): DetectedLines {
  const [first] = objects;
  if (first !== undefined) return detectLines(first);
  const [record] = records;
  if (record === undefined) return { lines: 'columns', rejected: false };
  const many = records.length === 1 ? '' : ` (and ${records.length - 1} more like it)`;
  const remedy = record.text.trimStart().startsWith('[')
    ? '; of a JSON array, jq -c ".[]" makes a line for each element'
    : '';
  throw new RemudaError(
    'invalid_file',
    `${path}: line ${record.line} ${parseLine(record.text)}${many}${remedy}`,
    { line: record.line },
  );
}

function plainColumns(objects: readonly JsonObject[], rejected: boolean): ColumnInfo[] {
  const names = new Set<string>();
  for (const object of objects)
    for (const name of Object.keys((rejected ? innerOf(object.input) : object) ?? {})) names.add(name);
  return [...names].map((name) => ({ name, type: null }));
}
