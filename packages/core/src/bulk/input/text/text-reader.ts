/** Reads the rows of JSONL and CSV in a runner, where they lie or as they came. */
import { RemudaError } from '../../../errors.js';
import type { ReadSettings, TextSpan } from '../../chunk.js';
import type { RowBlock } from '../../columns.js';
import type { RowReader, RowsWanted } from '../bulk-input.js';
import { readCsv } from './csv-rows.js';
import { readJsonLines } from './jsonl-rows.js';
import { OpenFiles } from './open-files.js';
import { CsvScanner, LineScanner, type RecordScanner } from './record-scanner.js';
import type { TextFile } from './text-file.js';
import { gatherSpan, RECORD_LIMIT_BYTES } from './text-span.js';

const STEP_BYTES = 1 << 20;

export function createTextReader(): RowReader {
  const files = new OpenFiles();
  return {
    async read(wanted: RowsWanted, payload: Uint8Array | null): Promise<RowBlock> {
      const bytes = payload ? asBuffer(payload) : await readSpan(files, wanted);
      const block = await (wanted.read.format === 'csv' ? readCsv : readJsonLines)(bytes, wanted);
      if (block.rows !== wanted.rows)
        throw new RemudaError(
          'source_unreadable',
          `${wanted.source?.path ?? 'the piece'}: ${block.rows} rows where ${wanted.rows} were counted from row ${wanted.firstRow} on; the file was written to meanwhile`,
        );
      return block;
    },
    close: () => files.close(),
  };
}

async function readSpan(files: OpenFiles, { source, range, read }: RowsWanted): Promise<Buffer> {
  if (!source || range.kind !== 'bytes')
    throw new RemudaError(
      'source_unreadable',
      `rows of ${read.format} by ${range.kind}, without a file or a payload`,
    );
  return files.use(source, (file) => spanOf(file, range, read));
}

/** In one piece, unless a record in it may be too long to be held. */
function spanOf(file: TextFile, span: TextSpan, read: ReadSettings): Promise<Buffer> {
  if (span.to - span.from <= RECORD_LIMIT_BYTES) return file.read(span.from, span.to);
  return gatherSpan((offset) => file.read(offset, offset + STEP_BYTES), span, scannerOf(read));
}

function scannerOf({ format, delimiter = ',' }: ReadSettings): RecordScanner {
  return format === 'csv' ? new CsvScanner(delimiter) : new LineScanner();
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
