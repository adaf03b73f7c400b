/**
 * Inputs made up from a signature, where a model has no golden cases: one row each, different from each other, the same
 * in every run. Sizes of open axes: as the caller says, else of the warm-up, else the bucket of a padding rule, else 32.
 */
import { deflateSync } from 'node:zlib';
import {
  ELEMENT_BYTES,
  elementCount,
  type HarnessConfig,
  joinBytesElements,
  type ModelSignature,
  type RawTensor,
  type SignatureTensor,
  toHalfBits,
} from '@remuda/schemas';
import { asElements } from '../harness/onnx-types.js';

/** Sizes by the name of a symbolic axis, or by `input.axis`: { W: 320 } or { 'x.3': 320 }. */
export type AxisSizes = Readonly<Record<string, number>>;

export interface SyntheticOptions {
  config: HarnessConfig;
  dims?: AxisSizes;
}

const GUESSED_SIZE = 32;
const IMAGE = { width: 320, height: 48 };

/** @param seed tells one row from another; inputs without a batch axis are the same for all */
export function syntheticInputs(
  signature: Pick<ModelSignature, 'inputs'>,
  seed: number,
  options: SyntheticOptions,
): RawTensor[] {
  return signature.inputs.map((input) => {
    const shape = shapeOf(input, options);
    const random = randomFrom(input.batch_axis === null ? 1 : seed + 1);
    const { name, datatype } = input;
    return { name, datatype, shape, bytes: bytesOf(input, elementCount(shape), random) };
  });
}

function shapeOf(input: SignatureTensor, { config, dims = {} }: SyntheticOptions): number[] {
  const warm = config.warmup.find((entry) => Object.keys(entry.dims).length > 0)?.dims ?? {};
  return input.shape.map((dim, axis) => {
    if (axis === input.batch_axis) return 1;
    if (typeof dim === 'number') return dim;
    const bucket = config.padding.find((rule) => rule.input === input.name && rule.axis === axis);
    return dims[`${input.name}.${axis}`] ?? dims[dim] ?? warm[dim] ?? bucket?.multiple_of ?? GUESSED_SIZE;
  });
}

type Random = () => number;

/** Numbers in [0, 1) that look random and are the same for a seed. */
function randomFrom(seed: number): Random {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const WORDS = ['a', 'horse', 'of', 'the', 'remuda', 'wagon', 'trail', 'north'];

function bytesOf(input: SignatureTensor, count: number, random: Random): Uint8Array {
  const { datatype } = input;
  if (datatype === 'BYTES') {
    const element = (): Uint8Array =>
      input.kind === 'image'
        ? noisyPng(random)
        : Buffer.from(WORDS[Math.floor(random() * WORDS.length)] as string);
    return joinBytesElements(Array.from({ length: count }, element));
  }
  const bytes = new Uint8Array(ELEMENT_BYTES[datatype] * count);
  const elements = asElements(datatype, bytes);
  for (let at = 0; at < count; at++) {
    if (elements instanceof BigInt64Array || elements instanceof BigUint64Array)
      elements[at] = BigInt(small(random));
    else if (datatype === 'FP16') elements[at] = toHalfBits(random() * 2 - 1);
    else if (datatype === 'FP32' || datatype === 'FP64') elements[at] = random() * 2 - 1;
    else elements[at] = datatype === 'BOOL' ? Math.round(random()) : small(random);
  }
  return bytes;
}

/** Whole numbers are often classes or positions: small ones are in any table. */
function small(random: Random): number {
  return Math.floor(random() * 2);
}

/** A grey image of noise, as a PNG. */
function noisyPng(random: Random): Buffer {
  const { width, height } = IMAGE;
  const rows = Buffer.alloc((width + 1) * height);
  // Each row begins with its filter: none.
  for (let at = 0; at < rows.length; at++) rows[at] = at % (width + 1) === 0 ? 0 : Math.floor(random() * 256);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(rows)),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(data.length, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}
