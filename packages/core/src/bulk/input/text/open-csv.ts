/** A CSV file, opened for the coordinator: its header is read here, its records in text-reader.ts. */
import { isAscii } from 'node:buffer';
import { RemudaError } from '../../../errors.js';
import type { OpenedInput, OpenOptions } from '../bulk-input.js';
import { parseRecord } from './csv-records.js';
import { type FirstRecord, firstRecords, openText } from './open-text.js';
import { CsvScanner } from './record-scanner.js';
import { TextInput } from './text-input.js';
import { typeToldFor } from './told-type.js';

/** @throws RemudaError file_not_found, invalid_file, invalid_request */
export async function openCsv({ path, compression, read }: OpenOptions): Promise<OpenedInput> {
  const delimiter = read.delimiter ?? ',';
  checkDelimiter(delimiter);
  const text = await openText(path, compression);
  try {
    const [first] = await firstRecords(text, new CsvScanner(delimiter), 1);
    if (!first)
      throw new RemudaError(
        'invalid_file',
        `${path} is empty, where a header with the names of the columns was expected`,
      );
    const header = headerOf(path, first, delimiter);
    checkTypes(path, header, Object.keys(read.types ?? {}));
    return new TextInput(text.file, text.source, compression, () => new CsvScanner(delimiter), {
      columns: header.map((name) => ({ name, type: typeToldFor(name, read) ?? null })),
      read: { ...read, delimiter, header },
      start: first.next,
    });
  } catch (error) {
    await text.source.close();
    throw error;
  }
}

function checkDelimiter(delimiter: string): void {
  if (delimiter.length === 1 && isAscii(Buffer.from(delimiter)) && !'"\r\n\0'.includes(delimiter)) return;
  throw new RemudaError(
    'invalid_request',
    `delimiter ${JSON.stringify(delimiter)}: expected one ASCII character that is no quote and no newline, such as "," ";" or a tab`,
  );
}

function headerOf(path: string, { text, line }: FirstRecord, delimiter: string): string[] {
  const record = parseRecord(text, delimiter);
  if (typeof record === 'string')
    throw new RemudaError('invalid_file', `${path}: line ${line}, the header, ${record}`);
  const names = record.map((name, i) => (name.trim() === '' ? `column_${i + 1}` : name.trim()));
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw new RemudaError(
      'invalid_file',
      `${path}: line ${line}, the header, names "${twice}" twice (fields ${names.indexOf(twice) + 1} and ${names.lastIndexOf(twice) + 1}); give each column a name of its own`,
    );
  return names;
}

function checkTypes(path: string, header: readonly string[], typed: readonly string[]): void {
  const missing = typed.find((name) => !header.includes(name));
  if (missing === undefined) return;
  const names = header.length > 40 ? `${header.slice(0, 40).join(', ')}, …` : header.join(', ');
  throw new RemudaError('invalid_request', `types: "${missing}" is no column of ${path}; it has ${names}`);
}
