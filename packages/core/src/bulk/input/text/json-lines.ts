/** One line of JSONL at a time: from its bytes to an object, or to the reason why it is none. */
import { isAscii, isUtf8 } from 'node:buffer';
import { shown } from './told-type.js';

export type JsonObject = Record<string, unknown>;

/** Decodes lines of a span; whether all of it is ASCII is asked once. */
export class LineTexts {
  readonly #bytes: Buffer;
  readonly #ascii: boolean;
  readonly #valid: boolean;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#ascii = isAscii(bytes);
    this.#valid = this.#ascii || isUtf8(bytes);
  }

  /** Bytes that are no UTF-8 as the character that stands for them. */
  text(from: number, to: number): string {
    return this.#ascii ? this.#bytes.toString('latin1', from, to) : this.#bytes.toString('utf8', from, to);
  }

  /** Where in the line the first byte is that is no UTF-8; -1: there is none. */
  invalidAt(from: number, to: number): number {
    if (this.#valid || isUtf8(this.#bytes.subarray(from, to))) return -1;
    // Halved: what begins with whole characters is valid or not whatever follows.
    let low = 0;
    let high = to - from;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (openBytes(this.#bytes.subarray(from, from + middle)) >= 0) low = middle;
      else high = middle;
    }
    return low - openBytes(this.#bytes.subarray(from, from + low));
  }
}

/** Bytes at the end that a character may begin with, where all before them is UTF-8; else -1. */
function openBytes(bytes: Buffer): number {
  for (let open = 0; open <= Math.min(3, bytes.length); open += 1) {
    if (!isUtf8(bytes.subarray(0, bytes.length - open))) continue;
    return open === 0 || isOpenCharacter(bytes.subarray(bytes.length - open)) ? open : -1;
  }
  return -1;
}

function isOpenCharacter(bytes: Buffer): boolean {
  return bytes.length < lengthOf(bytes[0] as number) && bytes.subarray(1).every((byte) => byte >> 6 === 2);
}

/** Of a character, by its first byte; 0: none begins with it. */
function lengthOf(lead: number): number {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

/** The object of a line, or why it has none. */
export function parseLine(text: string): JsonObject | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `is not valid JSON: ${(error as Error).message}; write one JSON object a line`;
  }
  return isObject(value) ? value : `is ${shown(value)}, where a JSON object was expected, such as {"x": 1}`;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONG_INTEGER = /^-?\d{16,}$/;
const MARK = '\u0000';

/** The object once more, where integers that a double cannot hold are bigint. */
export function parseExactly(text: string): JsonObject {
  const marked = text.replace(TOKENS, (token) => (LONG_INTEGER.test(token) ? `"\\u0000${token}"` : token));
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === 'string' && value.startsWith(MARK) && LONG_INTEGER.test(value.slice(1))
      ? BigInt(value.slice(1))
      : value,
  ) as JsonObject;
}
