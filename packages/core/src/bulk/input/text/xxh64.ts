/**
 * XXH64 with seed 0, as zstd puts it behind its frames. Numbers of 64 bits go as two halves: as bigint it would take
 * ten times as long as the unpacking. The last few bytes are few, and are done with bigint.
 */
const PRIME_1 = 0x9e3779b185ebca87n;
const PRIME_2 = 0xc2b2ae3d27d4eb4fn;
const PRIME_3 = 0x165667b19e3779f9n;
const PRIME_4 = 0x85ebca77c2b2ae63n;
const PRIME_5 = 0x27d4eb2f165667c5n;

const STRIPE = 32;
const LANES = 4;

export class Xxh64 {
  /** Low and high half of each lane. */
  readonly #lanes = new Int32Array(2 * LANES);
  readonly #rest = new Uint8Array(STRIPE);
  #restBytes = 0;
  #length = 0;

  constructor() {
    for (const [i, start] of [PRIME_1 + PRIME_2, PRIME_2, 0n, -PRIME_1].entries()) {
      this.#lanes[2 * i] = Number(BigInt.asIntN(32, start));
      this.#lanes[2 * i + 1] = Number(BigInt.asIntN(32, start >> 32n));
    }
  }

  update(bytes: Uint8Array): void {
    this.#length += bytes.length;
    let from = 0;
    if (this.#restBytes > 0) {
      from = Math.min(STRIPE - this.#restBytes, bytes.length);
      this.#rest.set(bytes.subarray(0, from), this.#restBytes);
      this.#restBytes += from;
      if (this.#restBytes < STRIPE) return;
      this.#stripes(this.#rest, 0, STRIPE);
      this.#restBytes = 0;
    }
    const whole = from + (bytes.length - from - ((bytes.length - from) % STRIPE));
    this.#stripes(bytes, from, whole);
    this.#rest.set(bytes.subarray(whole));
    this.#restBytes = bytes.length - whole;
  }

  /** The lower half of the sum of all bytes so far. */
  low32(): number {
    let sum = this.#length >= STRIPE ? this.#merged() : PRIME_5;
    sum = wrapped(sum + BigInt(this.#length));
    const rest = new DataView(this.#rest.buffer, 0, this.#restBytes);
    let at = 0;
    for (; at + 8 <= rest.byteLength; at += 8)
      sum = wrapped(rotated(sum ^ round(0n, rest.getBigUint64(at, true)), 27n) * PRIME_1 + PRIME_4);
    if (at + 4 <= rest.byteLength) {
      sum = wrapped(
        rotated(sum ^ wrapped(BigInt(rest.getUint32(at, true)) * PRIME_1), 23n) * PRIME_2 + PRIME_3,
      );
      at += 4;
    }
    for (; at < rest.byteLength; at += 1)
      sum = wrapped(rotated(sum ^ wrapped(BigInt(rest.getUint8(at)) * PRIME_5), 11n) * PRIME_1);
    sum = wrapped((sum ^ (sum >> 33n)) * PRIME_2);
    sum = wrapped((sum ^ (sum >> 29n)) * PRIME_3);
    return Number((sum ^ (sum >> 32n)) & 0xffffffffn);
  }

  #merged(): bigint {
    const lanes = new BigUint64Array(this.#lanes.buffer);
    const turns = [1n, 7n, 12n, 18n];
    let sum = 0n;
    for (const [i, lane] of lanes.entries()) sum = wrapped(sum + rotated(lane, turns[i] as bigint));
    for (const lane of lanes) sum = wrapped((sum ^ round(0n, lane)) * PRIME_1 + PRIME_4);
    return sum;
  }

  /** lane = rotl(lane + word × PRIME_2, 31) × PRIME_1, for each of the four words of each stripe. */
  #stripes(bytes: Uint8Array, from: number, to: number): void {
    const lanes = this.#lanes;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = from; at < to; at += STRIPE)
      for (let lane = 0; lane < LANES; lane += 1) {
        const place = at + 8 * lane;
        const productLow = view.getInt32(place, true);
        const productHigh = highOfProduct(productLow, view.getInt32(place + 4, true), 0x27d4eb4f, 0xc2b2ae3d);
        const laneLow = lanes[2 * lane] as number;
        const low = (laneLow + Math.imul(productLow, 0x27d4eb4f)) | 0;
        const carry = low >>> 0 < laneLow >>> 0 ? 1 : 0;
        const high = ((lanes[2 * lane + 1] as number) + productHigh + carry) | 0;
        const turnedLow = (low << 31) | (high >>> 1);
        const turnedHigh = (high << 31) | (low >>> 1);
        lanes[2 * lane] = Math.imul(turnedLow, 0x85ebca87);
        lanes[2 * lane + 1] = highOfProduct(turnedLow, turnedHigh, 0x85ebca87, 0x9e3779b1);
      }
  }
}

/** Bits 32 to 63 of a product of two numbers of 64 bits; the lower half is Math.imul's. */
function highOfProduct(low: number, high: number, otherLow: number, otherHigh: number): number {
  const a = low & 0xffff;
  const b = low >>> 16;
  const c = otherLow & 0xffff;
  const d = otherLow >>> 16;
  const inner = Math.imul(a, d) >>> 0;
  const outer = Math.imul(b, c) >>> 0;
  const middle = (Math.imul(a, c) >>> 16) + (inner & 0xffff) + (outer & 0xffff);
  const carried = Math.imul(b, d) + (inner >>> 16) + (outer >>> 16) + (middle >>> 16);
  return (carried + Math.imul(high, otherLow) + Math.imul(low, otherHigh)) | 0;
}

function round(sum: bigint, word: bigint): bigint {
  return wrapped(rotated(wrapped(sum + word * PRIME_2), 31n) * PRIME_1);
}

function wrapped(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}

function rotated(value: bigint, bits: bigint): bigint {
  return wrapped((value << bits) | (value >> (64n - bits)));
}
