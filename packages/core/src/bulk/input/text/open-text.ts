/** Opens a text file behind its compression, and tells a file that is not what it is taken for by its first bytes. */
import { isUtf8 } from 'node:buffer';
import type { BulkCompression } from '@remuda/schemas';
import { RemudaError } from '../../../errors.js';
import type { RecordScanner } from './record-scanner.js';
import { TextFile } from './text-file.js';
import { DamagedTextError, PlainText, type TextSource } from './text-source.js';
import { UnpackedText } from './unpacked-text.js';
import { MAGIC } from './unpackers.js';

export interface OpenedText {
  file: TextFile;
  source: TextSource;
  /** Bytes of a byte order mark, which belongs to no row. */
  start: number;
}

export interface FirstRecord {
  text: string;
  line: number;
  /** Where it ends, and the line behind it. */
  next: { byte: number; line: number };
}

/** What the first rows are taken to be like. */
const FIRST_RECORDS = 100;
const FIRST_BYTES = 8 * 1024 * 1024;

const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
const OTHERS: ReadonlyArray<{ magic: Buffer; what: string }> = [
  { magic: MAGIC.gzip, what: 'packed with gzip: set the compression to gzip, or name it .gz' },
  { magic: MAGIC.zstd, what: 'packed with zstd: set the compression to zstd, or name it .zst' },
  { magic: Buffer.from('PAR1'), what: 'a Parquet file: set the format to parquet' },
  { magic: Buffer.from('ARROW1'), what: 'an Arrow file: set the format to arrow' },
  { magic: Buffer.from('PK\x03\x04'), what: 'a zip archive: unpack it first' },
  { magic: Buffer.from([0xff, 0xfe]), what: 'UTF-16: make it UTF-8 first (iconv -f UTF-16 -t UTF-8)' },
  { magic: Buffer.from([0xfe, 0xff]), what: 'UTF-16: make it UTF-8 first (iconv -f UTF-16 -t UTF-8)' },
];

/** @throws RemudaError file_not_found, invalid_file */
export async function openText(path: string, compression: BulkCompression): Promise<OpenedText> {
  const file = await TextFile.open(path);
  try {
    if (compression !== 'none') await checkPacked(file, compression);
    const source = compression === 'none' ? new PlainText(file) : new UnpackedText(file, compression);
    return { file, source, start: await checkText(path, source) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function checkPacked(file: TextFile, compression: 'gzip' | 'zstd'): Promise<void> {
  const magic = MAGIC[compression];
  const found = await file.read(0, magic.length);
  if (found.equals(magic) || (compression === 'zstd' && isSkippable(found))) return;
  throw new RemudaError(
    'invalid_file',
    `${file.path} is not packed with ${compression}: it begins with ${shownBytes(found)}, expected ${shownBytes(magic)}; set the compression to what it is, or to none`,
  );
}

/** A frame of zstd that others begin a file with, to say how it was made. */
function isSkippable(found: Buffer): boolean {
  return ((found[0] ?? 0) & 0xf0) === 0x50 && found.subarray(1).equals(Buffer.from([0x2a, 0x4d, 0x18]));
}

async function checkText(path: string, source: TextSource): Promise<number> {
  const first = await atOrDamaged(path, source, 0);
  const other = OTHERS.find(({ magic }) => first.subarray(0, magic.length).equals(magic));
  if (other) throw new RemudaError('invalid_file', `${path} is ${other.what}`);
  return first.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0;
}

/**
 * The first rows of a text; fewer where it is damaged before them.
 * @param limit of one record; the text of a longer one is cut off there
 */
export async function firstRecords(
  { file, source, start }: OpenedText,
  scanner: RecordScanner,
  most = FIRST_RECORDS,
): Promise<FirstRecord[]> {
  const found: FirstRecord[] = [];
  let parts: Buffer[] = [];
  let line = 1;
  let byte = start;
  const close = (behind: number): void => {
    const bytes = Buffer.concat(parts);
    const next = { byte: behind, line: line + scanner.lines };
    if (!scanner.blank) found.push({ text: textOf(bytes), line, next });
    line += scanner.lines;
    parts = [];
  };
  for (let offset = byte; found.length < most && offset - start < FIRST_BYTES; offset = byte) {
    const window = await atOrDamaged(file.path, source, offset, found.length > 0);
    byte = offset + window.length;
    if (window.length === 0) {
      scanner.finish();
      if (parts.length > 0) close(offset);
      break;
    }
    let done = 0;
    while (found.length < most) {
      const end = scanner.next(window, done);
      parts.push(Buffer.from(window.subarray(done, end === -1 ? undefined : end)));
      if (end === -1) break;
      done = end;
      close(offset + end);
    }
  }
  return found;
}

/** @param tolerant true: damage is an end, since what is readable before it is wanted */
async function atOrDamaged(
  path: string,
  source: TextSource,
  offset: number,
  tolerant = false,
): Promise<Buffer> {
  try {
    return await source.at(offset);
  } catch (error) {
    if (!(error instanceof DamagedTextError)) throw error;
    if (tolerant) return Buffer.alloc(0);
    throw new RemudaError(
      'invalid_file',
      `${path}: ${error.reason} at byte ${error.byte}: no row before it could be read; make or fetch the file anew`,
      { byte: error.byte, rows: 0 },
    );
  }
}

function textOf(bytes: Buffer): string {
  const text = isUtf8(bytes) ? bytes.toString('utf8') : bytes.toString('latin1');
  return text.replace(/\r?\n$/, '');
}

function shownBytes(bytes: Buffer): string {
  return bytes.length === 0 ? 'nothing' : (bytes.toString('hex').match(/../g) ?? []).join(' ');
}
