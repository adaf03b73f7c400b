/**
 * What stands in the journal of a bulk job, line by line: a checksum of eight hex digits, a space, JSON. A line counts
 * when its checksum is right and a line break follows; from the first one that does not, nothing does. What the entries
 * mean together stands in ledger.ts.
 */
import { crc32 } from 'node:zlib';
import type { BulkCompression } from '@remuda/schemas';
import type { ChunkRange, ChunkSource, Mapping, ReadSettings } from '../chunk.js';
import type { InputPosition } from '../input/bulk-input.js';
import type { BulkSpecOutput } from '../job-record.js';
import type { KilledRows } from './splitting.js';

export const JOURNAL_FORM = 1;

/** What was settled before the first row ran, and holds to the last one. */
export interface Settled {
  model: string;
  version: string;
  /** Of the files of that version. */
  digest?: string;
  /** Rows of chunks are multiples of this, so that every row always runs in the same company. */
  batchRows: number;
  path: string;
  read: ReadSettings;
  compression: BulkCompression;
  mapping: Mapping;
  /** What is made of the answers: a job that goes on with this work must want the same. */
  answers: Pick<BulkSpecOutput, 'format' | 'compression' | 'outputs' | 'topK' | 'argmax'>;
  /** The input as it was then. */
  bytes: number;
  mtimeMs: number;
  totalRows: number | null;
  totalBytes: number | null;
}

/** A stretch of the input that was cut off: where it begins, and all that an order of it needs. */
export interface CutPiece {
  firstRow: number;
  rows: number;
  at: InputPosition;
  next: InputPosition;
  range: ChunkRange;
  source: ChunkSource | null;
  /** Of the input behind it. */
  bytes: number;
}

/** Where bytes lie in a file of the life that wrote the line. */
export interface Extent {
  offset: number;
  length: number;
}

/** The answers of rows that are done. */
export interface PartEntry {
  k: 'part';
  firstRow: number;
  rows: number;
  failed: number;
  data: Extent;
  errors: Extent | null;
  /** What joining needs to know of it. */
  meta?: unknown;
  worker: string;
  device: string;
  seconds: number;
  /** The first failures of it, in short. */
  failures?: { row: number; code: string; message: string }[];
}

export type JournalEntry =
  /** First line of each file: up to where the files of lives before count. */
  | {
      k: 'life';
      form: number;
      job: string;
      epoch: number;
      at: number;
      seen: [epoch: number, bytes: number][];
    }
  | { k: 'settled'; settled: Settled }
  | ({ k: 'cut' } & CutPiece)
  /** The input ends behind the last piece. */
  | { k: 'end'; rows: number }
  /** These rows go in two halves from now on: together they have killed a runner, or failed. */
  /** @param killed where the runs of it had got when its process died; absent: in half */
  | { k: 'split'; firstRow: number; rows: number; killed?: KilledRows }
  | PartEntry
  /** Rows travel in the order: a worker cannot read the source. */
  | { k: 'payload' }
  /** A stretch of time in which it worked, in seconds. */
  | { k: 'worked'; seconds: number; repeated: number }
  /** What had failed by then no longer counts against max_errors. */
  | { k: 'forgive'; failed: number }
  /** The output of that round is being put in its place: what is found there is ours. */
  | { k: 'give'; round: number }
  /** Parts with failures are done anew. */
  | { k: 'retry'; round: number };

export function journalLine(entry: JournalEntry): Buffer {
  const text = JSON.stringify(entry);
  return Buffer.from(`${checksum(text)} ${text}\n`);
}

export interface ReadEntry {
  entry: JournalEntry;
  /** Where its line lies. */
  at: Extent;
}

/** The lines that count, in order. */
export function* readJournal(bytes: Uint8Array): Generator<ReadEntry> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let offset = 0; ; ) {
    const end = text.indexOf(0x0a, offset);
    if (end < 0) return;
    const entry = parseLine(text.toString('utf8', offset, end));
    if (!entry) return;
    yield { entry, at: { offset, length: end + 1 - offset } };
    offset = end + 1;
  }
}

/** null: it is torn or damaged. */
export function parseLine(line: string): JournalEntry | null {
  const json = line.slice(9);
  if (line[8] !== ' ' || line.slice(0, 8) !== checksum(json)) return null;
  return JSON.parse(json) as JournalEntry;
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, '0');
}
