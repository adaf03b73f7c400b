/**
 * Reads replies to MGET out of a stream of bytes, cut anywhere. The bytes of a value are copied once, from the piece in
 * which they came to memory of the caller's; pieces may be overwritten as soon as `take` returns. Knows no connection.
 */

/** A value as it was read, and the block of memory under it; an empty value has none. */
export interface Payload {
  bytes: Uint8Array;
  memory: ArrayBuffer | undefined;
}

/** Where values are put. A BufferPool is one. */
export interface PayloadMemory {
  acquire(bytes: number): ArrayBuffer;
  release(buffer: ArrayBuffer): void;
}

export type MgetReply = (Payload | null)[] | Error;

/** A value of which bytes are still to come. */
interface OpenValue {
  bytes: Uint8Array;
  memory: ArrayBuffer;
  filled: number;
}

const CR = 0x0d;
const LF = 0x0a;

export class MgetReplies {
  readonly #memory: PayloadMemory;
  readonly #onReply: (reply: MgetReply) => void;
  /** What has come of a line that is not at its end. */
  #line = '';
  #values: (Payload | null)[] = [];
  /** Values of the reply under way; 0: between replies. */
  #expected = 0;
  #open: OpenValue | undefined;

  constructor(memory: PayloadMemory, onReply: (reply: MgetReply) => void) {
    this.#memory = memory;
    this.#onReply = onReply;
  }

  /** @throws Error for bytes that are no reply to MGET: nothing behind them can be trusted */
  take(piece: Uint8Array): void {
    let at = 0;
    while (at < piece.length) at = this.#open ? this.#fill(this.#open, piece, at) : this.#readLine(piece, at);
  }

  /** Forgets what has begun to come, after a lost connection. */
  reset(): void {
    if (this.#open) this.#memory.release(this.#open.memory);
    for (const value of this.#values) if (value?.memory) this.#memory.release(value.memory);
    this.#open = undefined;
    this.#values = [];
    this.#expected = 0;
    this.#line = '';
  }

  #fill(open: OpenValue, piece: Uint8Array, at: number): number {
    const end = Math.min(piece.length, at + open.bytes.length - open.filled);
    open.bytes.set(piece.subarray(at, end), open.filled);
    open.filled += end - at;
    if (open.filled === open.bytes.length) {
      this.#open = undefined;
      this.#add({ bytes: open.bytes, memory: open.memory });
    }
    return end;
  }

  #readLine(piece: Uint8Array, from: number): number {
    for (let at = from; at < piece.length; at++) {
      const byte = piece[at] as number;
      if (byte === LF) {
        const line = this.#line;
        this.#line = '';
        this.#begin(line);
        return at + 1;
      }
      if (byte !== CR) this.#line += String.fromCharCode(byte);
    }
    return piece.length;
  }

  #begin(line: string): void {
    // The line end behind a value.
    if (line === '') return;
    const rest = line.slice(1);
    const count = Number(rest);
    if (line[0] === '-' && this.#expected === 0) this.#onReply(new Error(rest));
    else if (line[0] === '*' && this.#expected === 0 && count > 0) this.#expected = count;
    else if (line[0] === '$' && this.#expected > 0 && count >= -1) this.#beginValue(count);
    else throw new Error(`Redis sent ${JSON.stringify(line.slice(0, 40))} in place of a reply to MGET`);
  }

  #beginValue(length: number): void {
    if (length === -1) this.#add(null);
    else if (length === 0) this.#add({ bytes: new Uint8Array(0), memory: undefined });
    else {
      const memory = this.#memory.acquire(length);
      this.#open = { bytes: new Uint8Array(memory, 0, length), memory, filled: 0 };
    }
  }

  #add(value: Payload | null): void {
    this.#values.push(value);
    if (this.#values.length < this.#expected) return;
    const reply = this.#values;
    this.#values = [];
    this.#expected = 0;
    this.#onReply(reply);
  }
}
