/**
 * Finds where records end in a text that comes in windows, without parsing them: lines of JSONL, records of CSV, whose
 * quotes may hold newlines. A record counts as a row unless it is blank. What cuts (text-input.ts) and what reads
 * (each-record.ts) use the same scanner, so that both see the same rows.
 */

export interface RecordScanner {
  /** Where the record that goes on at `from` ends, behind its newline; -1: not in this window, and the next goes on. */
  next(window: Uint8Array, from: number): number;
  /** Of the record that next() has found the end of, or that is open: newlines in it, its own among them. */
  readonly lines: number;
  /** Nothing but spaces: no row. */
  readonly blank: boolean;
  /** The text ends here: what is open is a record without a newline. */
  finish(): void;
}

const NEWLINE = 10;
const RETURN = 13;
const QUOTE = 34;
const SPACE = 32;
const TAB = 9;

export class LineScanner implements RecordScanner {
  lines = 0;
  blank = true;
  #open = false;

  next(window: Uint8Array, from: number): number {
    if (!this.#open) this.#begin();
    const found = window.indexOf(NEWLINE, from);
    const end = found === -1 ? window.length : found;
    if (this.blank) this.blank = isBlank(window, from, end);
    if (found === -1) return -1;
    this.lines += 1;
    this.#open = false;
    return found + 1;
  }

  finish(): void {
    if (!this.#open) this.#begin();
    this.#open = false;
  }

  #begin(): void {
    this.#open = true;
    this.lines = 0;
    this.blank = true;
  }
}

function isBlank(window: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) {
    const byte = window[at] as number;
    if (byte !== SPACE && byte !== RETURN && byte !== TAB) return false;
  }
  return true;
}

/** Where in a record the scanner stands. */
const FIELD_START = 0;
const PLAIN = 1;
const QUOTED = 2;
/** Behind a quote in a quoted field: its end, or the first of two that stand for one. */
const MAYBE_CLOSED = 3;

export class CsvScanner implements RecordScanner {
  lines = 0;
  blank = true;
  readonly #delimiter: number;
  #state = FIELD_START;
  #open = false;
  /** Next quote of the window, so that records without any are found by a search for the newline. */
  #window: Uint8Array | null = null;
  #quote = -1;

  /** @param delimiter one ASCII character */
  constructor(delimiter: string) {
    this.#delimiter = delimiter.charCodeAt(0);
  }

  /** The text has ended within quotes. */
  get unclosed(): boolean {
    return this.#state === QUOTED;
  }

  next(window: Uint8Array, from: number): number {
    if (!this.#open) this.#begin();
    if (this.#state <= PLAIN) {
      const newline = window.indexOf(NEWLINE, from);
      const end = newline === -1 ? window.length : newline;
      if (this.#nextQuote(window, from) >= end) return this.#unquoted(window, from, end);
    }
    return this.#byByte(window, from);
  }

  finish(): void {
    if (!this.#open) this.#begin();
    this.#open = false;
  }

  #begin(): void {
    this.#open = true;
    this.lines = 0;
    this.blank = true;
    this.#state = FIELD_START;
  }

  #nextQuote(window: Uint8Array, from: number): number {
    if (this.#window !== window || this.#quote < from) {
      this.#window = window;
      const found = window.indexOf(QUOTE, from);
      this.#quote = found === -1 ? Number.POSITIVE_INFINITY : found;
    }
    return this.#quote;
  }

  #unquoted(window: Uint8Array, from: number, end: number): number {
    if (this.blank) this.blank = this.#isBlank(window, from, end);
    if (end < window.length) {
      this.lines += 1;
      this.#open = false;
      return end + 1;
    }
    if (end > from) this.#state = window[end - 1] === this.#delimiter ? FIELD_START : PLAIN;
    return -1;
  }

  /** A delimiter is never blank: two tabs are three fields. */
  #isBlank(window: Uint8Array, from: number, to: number): boolean {
    for (let at = from; at < to; at += 1) {
      const byte = window[at] as number;
      if (byte === this.#delimiter || (byte !== SPACE && byte !== RETURN)) return false;
    }
    return true;
  }

  #byByte(window: Uint8Array, from: number): number {
    const delimiter = this.#delimiter;
    let state = this.#state;
    if (this.blank && from < window.length) this.blank = false;
    for (let at = from; at < window.length; at += 1) {
      const byte = window[at] as number;
      if (state === QUOTED) {
        if (byte === QUOTE) state = MAYBE_CLOSED;
        else if (byte === NEWLINE) this.lines += 1;
      } else if (byte === QUOTE && (state === FIELD_START || state === MAYBE_CLOSED)) state = QUOTED;
      else if (byte === delimiter) state = FIELD_START;
      else if (byte === NEWLINE) {
        this.#state = FIELD_START;
        this.lines += 1;
        this.#open = false;
        return at + 1;
      } else state = PLAIN;
    }
    this.#state = state;
    return -1;
  }
}
