/**
 * Vectors as bytes, and back: the form in which parts of columnar outputs wait to be joined. A JSON header says what
 * there is; the arrays follow, each at a multiple of 8 bytes, so that reading them copies nothing.
 */
import type { NumericType } from '../columns.js';
import { NUMERIC_ARRAY } from '../numeric-types.js';
import { noValues, type Vector } from './vectors.js';

/** What the bytes of a vector do not say. Lengths in elements. */
interface VectorFacts {
  kind: Vector['kind'];
  length: number;
  type?: NumericType;
  marked?: true;
  /** Bytes of texts. */
  bytes?: number;
  child?: VectorFacts;
}

const ALIGNMENT = 8;

export function encodeVectors(vectors: readonly Vector[]): Uint8Array {
  const arrays: Uint8Array[] = [];
  const facts = vectors.map((vector) => describe(vector, arrays));
  const header = Buffer.from(JSON.stringify(facts), 'utf8');
  const size = arrays.reduce((sum, array) => sum + aligned(array.byteLength), aligned(4 + header.length));
  const out = new Uint8Array(size);
  new DataView(out.buffer).setUint32(0, header.length, true);
  out.set(header, 4);
  let at = aligned(4 + header.length);
  for (const array of arrays) {
    out.set(array, at);
    at += aligned(array.byteLength);
  }
  return out;
}

export function decodeVectors(block: Uint8Array): Vector[] {
  const bytes = block.byteOffset % ALIGNMENT === 0 ? block : new Uint8Array(block);
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = Buffer.from(bytes.buffer, bytes.byteOffset + 4, length).toString('utf8');
  const reader = new ArrayReader(bytes, aligned(4 + length));
  return (JSON.parse(header) as VectorFacts[]).map((facts) => restore(facts, reader));
}

function aligned(length: number): number {
  return Math.ceil(length / ALIGNMENT) * ALIGNMENT;
}

function describe(vector: Vector, arrays: Uint8Array[]): VectorFacts {
  const { kind, length, valid } = vector;
  if (kind === 'none') return { kind, length };
  const add = (array: ArrayBufferView): void => {
    arrays.push(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  };
  if (valid) add(valid);
  const base: VectorFacts = valid ? { kind, length, marked: true } : { kind, length };
  if (kind === 'number') {
    add(vector.values);
    return { ...base, type: vector.type };
  }
  add(vector.offsets);
  if (kind === 'list') return { ...base, child: describe(vector.child, arrays) };
  add(vector.data);
  return { ...base, bytes: vector.data.byteLength };
}

class ArrayReader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  next(type: NumericType, length: number): unknown {
    const array = new NUMERIC_ARRAY[type](this.#bytes.buffer, this.#bytes.byteOffset + this.#at, length);
    this.#at += aligned(array.byteLength);
    return array;
  }
}

function restore({ kind, length, type, marked, bytes, child }: VectorFacts, reader: ArrayReader): Vector {
  if (kind === 'none') return noValues(length);
  const valid = marked ? (reader.next('uint8', length) as Uint8Array) : null;
  if (kind === 'number') {
    const values = reader.next(type as NumericType, length) as never;
    return { kind, type: type as NumericType, length, valid, values };
  }
  const offsets = reader.next('uint32', length + 1) as Uint32Array;
  if (kind === 'list') return { kind, length, valid, offsets, child: restore(child as VectorFacts, reader) };
  return { kind, length, valid, offsets, data: reader.next('uint8', bytes as number) as Uint8Array };
}
