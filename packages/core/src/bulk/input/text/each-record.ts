/** Goes through the records of a span that has been gathered, and knows of each where it stood in the file. */
import type { TextSpan } from '../../chunk.js';
import type { RecordScanner } from './record-scanner.js';
import { longRecordAt, RECORD_LIMIT_BYTES } from './text-span.js';
import { TURN_ROWS, type Turns } from './turns.js';

/** A record after which the clock is looked at in any case. */
const LONG_BYTES = 16 * 1024;

export interface RecordPlace {
  /** Line of the file, from 1; null: not known. */
  line: number | null;
  /** Byte of the text, what lies behind the compression; null: not known. */
  byte: number | null;
}

export interface TextRecord extends RecordPlace {
  /** In the span as it was gathered, without its newline. */
  from: number;
  to: number;
  /** Why it is no row that could be read, where that is known already. */
  fault: string | null;
}

/** Calls `take` for every record that is a row, in turns. */
export async function eachRecord(
  bytes: Buffer,
  span: Partial<TextSpan>,
  scanner: RecordScanner,
  take: (record: TextRecord) => unknown,
  turns: Turns,
): Promise<void> {
  let rows = 0;
  let line = span.line ?? null;
  let byte = span.from ?? null;
  for (let from = 0; from < bytes.length; ) {
    let behind = scanner.next(bytes, from);
    if (behind === -1) {
      scanner.finish();
      behind = bytes.length;
    }
    rows += 1;
    if ((rows % TURN_ROWS === 0 || behind - from > LONG_BYTES) && turns.isOver) await turns.next();
    const long = longRecordAt(bytes, from, behind);
    if (!scanner.blank)
      take({ from, to: endOf(bytes, from, behind), line, byte, fault: long && tooLong(long.bytes) });
    if (byte !== null) byte += long ? long.bytes : behind - from;
    if (line !== null) line += long ? long.lines : scanner.lines;
    from = behind;
  }
}

function endOf(bytes: Buffer, from: number, behind: number): number {
  let end = behind;
  if (end > from && bytes[end - 1] === 10) end -= 1;
  if (end > from && bytes[end - 1] === 13) end -= 1;
  return end;
}

function tooLong(length: number): string {
  return `is ${length} bytes long, and at most ${RECORD_LIMIT_BYTES} are read of a row; give large inputs as references, or in a Parquet file`;
}

/** "line 12 (byte 3456)" */
export function placeOf({ line, byte }: RecordPlace, row: number): string {
  const start = line === null ? `row ${row}` : `line ${line}`;
  return byte === null ? start : `${start} (byte ${byte})`;
}
