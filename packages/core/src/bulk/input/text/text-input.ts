/**
 * A text file as the coordinator sees it: cut where records end, by bytes alone, nothing parsed. Pieces of a plain file
 * are spans of it, which runners read for themselves; those of a compressed one travel. Where a piece ends depends on
 * its position and the limits alone, so that a job that goes on after a crash cuts as it would have without.
 */
import type { BulkCompression } from '@remuda/schemas';
import { RemudaError } from '../../../errors.js';
import type { ReadSettings, TextSpan } from '../../chunk.js';
import type { ColumnInfo } from '../../columns.js';
import type { CutLimits, InputPosition, OpenedInput, Piece } from '../bulk-input.js';
import type { RecordScanner } from './record-scanner.js';
import type { TextFile } from './text-file.js';
import { DamagedTextError, type TextSource } from './text-source.js';
import { gatherSpan } from './text-span.js';

export interface TextInputFacts {
  columns: readonly ColumnInfo[];
  read: ReadSettings;
  /** Where the first row begins: behind a BOM and a header. */
  start: { byte: number; line: number };
  /** Where it is known. */
  totalRows?: number;
  /** Of a piece, whatever the limits allow: where a short row leads to something large. Less than a multiple is not cut. */
  mostRows?: number;
  /** Pieces travel even though the file could be read: what they hold is short, and leads elsewhere. */
  travels?: boolean;
}

/** A place between two records. */
interface Mark {
  byte: number;
  line: number;
  rows: number;
}

export class TextInput implements OpenedInput {
  readonly columns: readonly ColumnInfo[];
  readonly read: ReadSettings;
  readonly compression: BulkCompression;
  readonly totalRows: number | null;
  readonly totalBytes: number;
  readonly #file: TextFile;
  readonly #source: TextSource;
  readonly #facts: TextInputFacts;
  readonly #scanner: () => RecordScanner;

  constructor(
    file: TextFile,
    source: TextSource,
    compression: BulkCompression,
    scanner: () => RecordScanner,
    facts: TextInputFacts,
  ) {
    this.columns = facts.columns;
    this.read = facts.read;
    this.compression = compression;
    this.totalRows = facts.totalRows ?? null;
    this.totalBytes = file.bytes;
    this.#file = file;
    this.#source = source;
    this.#facts = facts;
    this.#scanner = scanner;
  }

  bytesAt({ byte }: InputPosition): number {
    return this.#source.packedAt(byte ?? this.#facts.start.byte);
  }

  async cut(position: InputPosition, limits: CutLimits): Promise<Piece | null> {
    const from = this.#markOf(position);
    this.#source.release(from.byte);
    const { end, damage } = await this.#endOf(from, limits);
    if (end.rows > 0) return this.#piece(position, from, end);
    if (damage) throw this.#damaged(damage, position, from);
    return null;
  }

  async payloadOf({ range }: Pick<Piece, 'range' | 'rows' | 'firstRow'>): Promise<Uint8Array> {
    if (range.kind === 'rows' || range.from === undefined || range.to === undefined)
      throw new Error(`a piece of ${this.#file.path} has a range of another format`);
    return this.#gather({ from: range.from, to: range.to });
  }

  close(): Promise<void> {
    return this.#source.close();
  }

  #markOf({ byte, line }: InputPosition): Mark {
    const { start } = this.#facts;
    return { byte: byte ?? start.byte, line: line ?? start.line, rows: 0 };
  }

  /** The last place where a piece may end, and whether the text is damaged behind it. */
  async #endOf(from: Mark, limits: CutLimits): Promise<{ end: Mark; damage?: DamagedTextError }> {
    const rows = Math.min(limits.rows, this.#facts.mostRows ?? limits.rows);
    const cutter = new Cutter(from, { ...limits, rows }, this.#scanner());
    for (let offset = from.byte; ; ) {
      let window: Buffer;
      try {
        window = await this.#source.at(offset);
      } catch (damage) {
        // The record that the damage is in is no row; those before it are.
        if (damage instanceof DamagedTextError) return { end: cutter.whole, damage };
        throw damage;
      }
      if (window.length === 0) return { end: cutter.finish(offset) };
      const end = cutter.scan(window, offset);
      if (end) return { end };
      offset += window.length;
    }
  }

  async #piece(position: InputPosition, from: Mark, end: Mark): Promise<Piece> {
    const span: TextSpan = { from: from.byte, to: end.byte, line: from.line };
    const travels = this.#facts.travels || this.compression !== 'none';
    return {
      firstRow: position.row,
      rows: end.rows,
      source: travels ? null : this.#file.source,
      range: { kind: travels ? 'payload' : 'bytes', ...span },
      payload: travels ? await this.#gather(span) : null,
      bytes: Math.max(0, this.#source.packedAt(end.byte) - this.#source.packedAt(from.byte)),
      next: { row: position.row + end.rows, byte: end.byte, line: end.line },
    };
  }

  #gather(span: TextSpan): Promise<Buffer> {
    return gatherSpan((offset) => this.#source.at(offset), span, this.#scanner());
  }

  #damaged({ reason, byte }: DamagedTextError, { row }: InputPosition, { line }: Mark): RemudaError {
    return new RemudaError(
      'invalid_file',
      `${this.#file.path}: ${reason} at byte ${byte} of ${this.totalBytes}: ${row} rows before it could be read, up to line ${line - 1}; make or fetch the file anew and start the job again`,
      { byte, rows: row, line },
    );
  }
}

/** Counts rows through the windows of a text and remembers where a piece may end. */
class Cutter {
  /** Behind the last whole record. */
  whole: Mark;
  readonly #from: Mark;
  readonly #scanner: RecordScanner;
  readonly #multiple: number;
  readonly #mostRows: number;
  readonly #mostBytes: number;
  /** Where a multiple of rows was full. */
  #full: Mark;

  constructor(from: Mark, { rows, multipleOf, bytes }: CutLimits, scanner: RecordScanner) {
    this.#from = from;
    this.whole = from;
    this.#full = from;
    this.#scanner = scanner;
    this.#multiple = Math.max(1, multipleOf);
    this.#mostRows = Math.max(this.#multiple, Math.floor(rows / this.#multiple) * this.#multiple);
    this.#mostBytes = bytes;
  }

  /** The end of the piece, where it is in this window or before it. */
  scan(window: Buffer, offset: number): Mark | null {
    const scanner = this.#scanner;
    let { line, rows } = this.whole;
    let at = 0;
    for (;;) {
      const behind = scanner.next(window, at);
      if (behind === -1) break;
      at = behind;
      line += scanner.lines;
      if (scanner.blank) continue;
      rows += 1;
      if (rows % this.#multiple !== 0) continue;
      const end = this.#boundary({ byte: offset + at, line, rows });
      if (end) return end;
    }
    if (at > 0) this.whole = { byte: offset + at, line, rows };
    // What is behind the mark does not fit any more, wherever its next one is.
    const beyond = offset + window.length - this.#from.byte > this.#mostBytes;
    return beyond && this.#full.rows > 0 ? this.#full : null;
  }

  #boundary(mark: Mark): Mark | null {
    const length = mark.byte - this.#from.byte;
    if (length > this.#mostBytes && this.#full.rows > 0) return this.#full;
    this.#full = mark;
    return mark.rows === this.#mostRows || length >= this.#mostBytes ? mark : null;
  }

  /** The text ends at `offset`, with or without a newline. */
  finish(offset: number): Mark {
    this.#scanner.finish();
    const open = offset > this.whole.byte && !this.#scanner.blank;
    return {
      byte: offset,
      line: this.whole.line + (offset > this.whole.byte ? this.#scanner.lines + 1 : 0),
      rows: this.whole.rows + (open ? 1 : 0),
    };
  }
}
