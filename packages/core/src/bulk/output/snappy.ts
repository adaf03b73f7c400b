/**
 * Snappy, raw format: literals, and copies of what stood up to 64 KB before. Compresses into memory that is reserved once:
 * the writer's own makes an object for each literal and takes three times as long.
 */
const BLOCK = 65_536;
const HASH_BITS = 14;
const HASH_SHIFT = 32 - HASH_BITS;
/** The last bytes of a block are not searched: a look ahead must not leave it. */
const MARGIN = 15;
const SHORT_LITERAL = 48;

const table = new Uint16Array(1 << HASH_BITS);

export function snappy(input: Uint8Array): Uint8Array {
  const packer = new Packer(input);
  for (let from = 0; from < input.length; from += BLOCK)
    packer.block(from, Math.min(input.length, from + BLOCK));
  return packer.bytes();
}

function wordAt(bytes: Uint8Array, i: number): number {
  return (
    (bytes[i] as number) |
    ((bytes[i + 1] as number) << 8) |
    ((bytes[i + 2] as number) << 16) |
    ((bytes[i + 3] as number) << 24)
  );
}

class Packer {
  readonly #in: Uint8Array;
  readonly #out: Uint8Array;
  #at = 0;

  constructor(input: Uint8Array) {
    this.#in = input;
    // A block that cannot be compressed grows by three bytes; a copy is never longer than what it stands for.
    this.#out = new Uint8Array(8 + input.length + Math.ceil(input.length / 6));
    this.#length(input.length);
  }

  bytes(): Uint8Array {
    return this.#out.subarray(0, this.#at);
  }

  block(from: number, to: number): void {
    const input = this.#in;
    const limit = to - MARGIN;
    let told = from;
    let at = from + 1;
    // The longer nothing is found, the longer the steps: noise is passed over quickly.
    let patience = 32;
    table.fill(0);
    while (at <= limit) {
      const word = wordAt(input, at);
      const slot = Math.imul(word, 0x1e35a7bd) >>> HASH_SHIFT;
      const before = from + (table[slot] as number);
      table[slot] = at - from;
      if (before >= at || wordAt(input, before) !== word) {
        at += patience++ >>> 5;
        continue;
      }
      let end = at + 4;
      const back = at - before;
      while (end < to && input[end] === input[end - back]) end++;
      this.#literal(told, at);
      this.#copy(back, end - at);
      at = end;
      told = end;
      patience = 32;
    }
    this.#literal(told, to);
  }

  #length(length: number): void {
    let rest = length;
    for (; rest > 127; rest = Math.floor(rest / 128)) this.#out[this.#at++] = (rest % 128) | 128;
    this.#out[this.#at++] = rest;
  }

  #literal(from: number, to: number): void {
    const out = this.#out;
    const last = to - from - 1;
    if (last < 0) return;
    if (last < 60) out[this.#at++] = last << 2;
    else if (last < 256) {
      out[this.#at++] = 60 << 2;
      out[this.#at++] = last;
    } else {
      out[this.#at++] = 61 << 2;
      out[this.#at++] = last & 255;
      out[this.#at++] = last >>> 8;
    }
    if (last < SHORT_LITERAL) for (let i = from; i < to; i++) out[this.#at++] = this.#in[i] as number;
    else {
      out.set(this.#in.subarray(from, to), this.#at);
      this.#at += last + 1;
    }
  }

  /** At most 64 bytes each, and none of fewer than four. */
  #copy(back: number, length: number): void {
    let left = length;
    for (; left >= 68; left -= 64) this.#copyOnce(back, 64);
    if (left > 64) {
      this.#copyOnce(back, 60);
      left -= 60;
    }
    this.#copyOnce(back, left);
  }

  #copyOnce(back: number, length: number): void {
    const out = this.#out;
    if (length < 12 && back < 2_048) {
      out[this.#at++] = 1 | ((length - 4) << 2) | ((back >>> 8) << 5);
      out[this.#at++] = back & 255;
      return;
    }
    out[this.#at++] = 2 | ((length - 1) << 2);
    out[this.#at++] = back & 255;
    out[this.#at++] = back >>> 8;
  }
}
