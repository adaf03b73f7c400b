/**
 * The binary tensor layout of the Open Inference Protocol: a JSON header whose `inputs` (or `outputs`) name each
 * tensor and its binary_data_size, then the raw little-endian tensors in that order. Over HTTP the header's length
 * stands in the Inference-Header-Content-Length header. In Redis, and between processes, it stands in front of the
 * frame as a uint32 little-endian: one codec, one format.
 * Source: Open Inference Protocol v2, "Binary Tensor Data Extension".
 */
import * as z from 'zod';
import { Datatype, ELEMENT_BYTES, elementCount } from './datatypes.js';
import { parseJson } from './json-text.js';
import { type RawTensor, Shape } from './tensor.js';
import { checkedBytes } from './tensor-codec.js';
import { InvalidInputError, refuse, violationsOf } from './violation.js';

/** Describes one tensor in the header of a frame. */
export const FrameTensor = z
  .strictObject({
    name: z.string().min(1).max(256),
    datatype: Datatype,
    shape: Shape,
    parameters: z
      .strictObject({ binary_data_size: z.int().min(0).describe('Bytes of this tensor behind the header.') })
      .optional(),
    data: z.array(z.unknown()).optional().describe('Elements as JSON, where the tensor is not binary.'),
  })
  .meta({ id: 'FrameTensor' });
export type FrameTensor = z.infer<typeof FrameTensor>;

/** Made once: to make a schema costs many times what parsing a tensor with it does. */
const FrameTensors = z.array(FrameTensor);

/** Bytes in front of a frame's header that hold its length. */
export const FRAME_PREFIX_BYTES = 4;

/** Under which key of the header the tensors stand. */
export type FrameKind = 'inputs' | 'outputs';

/** Header facts beside the tensors that travel in a frame (parameters of the request, extras of a result). */
export type FrameExtras = Record<string, unknown>;

/** A decoded frame: `tensors` are views into the buffer that was given, not copies. */
export interface Frame {
  tensors: RawTensor[];
  extras: FrameExtras;
}

/** Encodes tensors with the length of the header in front, ready for Redis. One copy of the tensor bytes. */
export function encodeFrame(
  kind: FrameKind,
  tensors: readonly RawTensor[],
  extras: FrameExtras = {},
): Buffer {
  const { header, bodyBytes } = frameHeader(kind, tensors, extras);
  const headerBytes = Buffer.byteLength(header);
  const frame = Buffer.allocUnsafe(FRAME_PREFIX_BYTES + headerBytes + bodyBytes);
  frame.writeUInt32LE(headerBytes, 0);
  writeBody(frame, FRAME_PREFIX_BYTES, header, headerBytes, tensors);
  return frame;
}

/** The same as a binary HTTP body: no length in front, it goes into Inference-Header-Content-Length. */
export function encodeBinaryBody(
  kind: FrameKind,
  tensors: readonly RawTensor[],
  extras: FrameExtras = {},
): { body: Buffer; headerLength: number } {
  const { header, bodyBytes } = frameHeader(kind, tensors, extras);
  const headerLength = Buffer.byteLength(header);
  const body = Buffer.allocUnsafe(headerLength + bodyBytes);
  writeBody(body, 0, header, headerLength, tensors);
  return { body, headerLength };
}

function writeBody(
  into: Buffer,
  at: number,
  header: string,
  headerBytes: number,
  tensors: readonly RawTensor[],
): void {
  into.write(header, at);
  let offset = at + headerBytes;
  for (const tensor of tensors) {
    into.set(tensor.bytes, offset);
    offset += tensor.bytes.byteLength;
  }
}

function frameHeader(
  kind: FrameKind,
  tensors: readonly RawTensor[],
  extras: FrameExtras,
): { header: string; bodyBytes: number } {
  let bodyBytes = 0;
  const described = tensors.map(({ name, datatype, shape, bytes }) => {
    bodyBytes += bytes.byteLength;
    return { name, datatype, shape, parameters: { binary_data_size: bytes.byteLength } };
  });
  return { header: JSON.stringify({ ...extras, [kind]: described }), bodyBytes };
}

/**
 * Makes a binary body a frame in place, without a copy. The caller answers for what decodeFrame trusts: every tensor is
 * binary and checked, and nothing in the header is to be read otherwise when it is stored.
 * @param withRoom FRAME_PREFIX_BYTES free bytes, then the body
 */
export function frameInPlace(withRoom: Buffer, headerLength: number): Buffer {
  withRoom.writeUInt32LE(headerLength, 0);
  return withRoom;
}

/** Decodes a frame that encodeFrame or frameInPlace made. Trusts it: our own store is not an edge. */
export function decodeFrame(frame: Uint8Array): Frame {
  const view = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
  const headerBytes = view.readUInt32LE(0);
  const start = FRAME_PREFIX_BYTES + headerBytes;
  const { inputs, outputs, ...extras } = JSON.parse(
    view.toString('utf8', FRAME_PREFIX_BYTES, start),
  ) as Partial<Record<FrameKind, Required<FrameTensor>[]>>;
  const described = inputs ?? outputs ?? [];
  let offset = start;
  const tensors = described.map(({ name, datatype, shape, parameters }): RawTensor => {
    const bytes = frame.subarray(offset, offset + parameters.binary_data_size);
    offset += parameters.binary_data_size;
    return { name, datatype, shape, bytes };
  });
  return { tensors, extras };
}

/**
 * Splits a binary HTTP body at its header. Returns the parsed JSON header and the bytes behind it.
 * @param headerLength value of Inference-Header-Content-Length, as text
 * @throws InvalidInputError malformed_frame, malformed_json
 */
export function splitBinaryBody(
  body: Uint8Array,
  headerLength: string,
): { header: unknown; rest: Uint8Array } {
  const length = /^\d{1,10}$/.test(headerLength) ? Number(headerLength) : Number.NaN;
  if (!(length >= 2 && length <= body.byteLength)) {
    refuse(
      ['Inference-Header-Content-Length'],
      `a whole number from 2 to the length of the body (${body.byteLength})`,
      JSON.stringify(headerLength),
      'malformed_frame',
    );
  }
  const text = Buffer.from(body.buffer, body.byteOffset, length).toString('utf8');
  return { header: parseJson(text), rest: body.subarray(length) };
}

/** A tensor of a binary body: its bytes, or its JSON data. */
export type FrameTensorBytes = FrameTensor & { bytes: Uint8Array | undefined };

/**
 * The tensors that a binary body's header describes, cut out of the bytes behind it (views, no copy). Their bytes are
 * checked against datatype and shape; what the model expects is checked later, with the signature.
 * @param from where in `rest` the first of them begins; `end` is where the last one ends
 * @throws InvalidInputError malformed_frame, invalid_request, invalid_input
 */
export function cutTensors(
  described: unknown,
  rest: Uint8Array,
  path: PropertyKey[],
  from = 0,
): { tensors: FrameTensorBytes[]; end: number } {
  const parsed = FrameTensors.safeParse(described);
  if (!parsed.success) {
    throw new InvalidInputError(violationsOf(parsed.error, described, path), 'invalid_request');
  }
  let offset = from;
  const tensors = parsed.data.map((tensor, index) => {
    const at = [...path, index];
    if (!isBinary(tensor, at)) return { ...tensor, bytes: undefined };
    const size = binarySize(tensor, rest.byteLength - offset, at);
    const bytes = rest.subarray(offset, offset + size);
    offset += size;
    return { ...tensor, bytes: checkedBytes(bytes, tensor.datatype, tensor.shape, at) };
  });
  return { tensors, end: offset };
}

/** Refuses bytes that no tensor of the header accounts for. @throws InvalidInputError malformed_frame */
export function refuseLeftOver(rest: Uint8Array, end: number): void {
  if (end === rest.byteLength) return;
  refuse(
    [],
    `${end} bytes behind the header, as the tensors' binary_data_size add up`,
    `${rest.byteLength} bytes`,
    'malformed_frame',
  );
}

/** Whether the elements stand behind the header, and not in it as JSON. */
function isBinary(tensor: FrameTensor, at: PropertyKey[]): boolean {
  const asJson = tensor.data !== undefined;
  const asBytes = tensor.parameters !== undefined;
  if (asJson === asBytes) {
    const received = asJson ? 'both' : 'neither';
    refuse(at, 'one of "data" and parameters.binary_data_size', received, 'malformed_frame');
  }
  return asBytes;
}

function binarySize(tensor: FrameTensor, left: number, at: PropertyKey[]): number {
  const size = tensor.parameters?.binary_data_size ?? 0;
  const width = ELEMENT_BYTES[tensor.datatype];
  const needed = width * elementCount(tensor.shape);
  const path = [...at, 'parameters', 'binary_data_size'];
  if (width > 0 && size !== needed) {
    const expected = `${needed} bytes (${tensor.datatype} [${tensor.shape.join(', ')}])`;
    refuse(path, expected, `${size} bytes`, 'malformed_frame');
  }
  if (size > left) {
    refuse(
      path,
      `at most the ${left} bytes that are left behind the header`,
      `${size} bytes`,
      'malformed_frame',
    );
  }
  return size;
}
