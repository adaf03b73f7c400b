/**
 * A span of a text in memory, whatever it holds: a record that is longer than a record may be is left out, and a mark
 * with its length stands in its place, so that a file of one endless line needs no more memory than any other.
 */
import type { TextSpan } from '../../chunk.js';
import type { RecordScanner } from './record-scanner.js';

/** Longest line of JSONL, record of CSV or line of a list that is read, in bytes. */
export const RECORD_LIMIT_BYTES = 32 * 1024 * 1024;

/** No record begins with it: JSON does not, and of CSV a text does not. */
const MARK = 0;

/** Bytes from an offset on, at least one; empty: there are no more. */
type BytesAt = (offset: number) => Promise<Buffer>;

export interface LongRecord {
  bytes: number;
  lines: number;
}

export async function gatherSpan(
  at: BytesAt,
  { from, to }: TextSpan,
  scanner: RecordScanner,
  limit = RECORD_LIMIT_BYTES,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let record: Buffer[] = [];
  let length = 0;
  const take = (bytes: Buffer): void => {
    length += bytes.length;
    // Copied: the window is used again.
    if (length <= limit) record.push(Buffer.from(bytes));
    else record = [];
  };
  const close = (): void => {
    if (length > limit) record = [markOf({ bytes: length, lines: scanner.lines })];
    parts.push(...record);
    record = [];
    length = 0;
  };
  // Nothing in it can be too long: it is taken as it is.
  const scanned = to - from > limit;
  for (let offset = from; offset < to; ) {
    const window = (await at(offset)).subarray(0, to - offset);
    if (window.length === 0) break;
    let done = 0;
    for (let end = 0; scanned && end !== -1; ) {
      end = scanner.next(window, done);
      if (end === -1) break;
      take(window.subarray(done, end));
      close();
      done = end;
    }
    if (done < window.length) take(window.subarray(done));
    offset += window.length;
  }
  if (length > 0) {
    scanner.finish();
    close();
  }
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
}

function markOf({ bytes, lines }: LongRecord): Buffer {
  return Buffer.from(`\0${bytes} ${lines}\n`);
}

/** What stands at `from`, where it is the mark of a record that was left out. */
export function longRecordAt(bytes: Buffer, from: number, to: number): LongRecord | null {
  if (bytes[from] !== MARK) return null;
  const [, length, lines] =
    /^\0(\d+) (\d+)\n$/.exec(bytes.toString('latin1', from, Math.min(to, from + 64))) ?? [];
  return length === undefined ? null : { bytes: Number(length), lines: Number(lines) };
}
