/**
 * A tensor on the wire, and in memory. On the wire its elements stand as JSON (`data`, flat or nested as the shape
 * says), as base64 of the little-endian bytes (`b64`), or behind the JSON header of a binary body (frame.ts).
 * In memory every one of these is the same RawTensor; tensor-codec.ts goes between them.
 */
import * as z from 'zod';
import { Datatype } from './datatypes.js';

/** Highest number of dimensions that is taken. */
export const MAX_RANK = 16;

export const Shape = z
  .array(z.int().min(0))
  .max(MAX_RANK)
  .describe('Sizes of the axes, outermost first; [] is a scalar.');

/**
 * An array whose entries are not looked at: the codec checks elements in one pass that knows datatype and shape, and
 * z.array(z.unknown()) costs a millisecond on 27,000 of them to find out nothing.
 */
const AnyArray = z
  .unknown()
  .check((context) => {
    const { value, issues } = context;
    if (!Array.isArray(value)) issues.push({ code: 'invalid_type', expected: 'array', input: value });
  })
  .meta({ type: 'array', items: {} }) as unknown as z.ZodType<unknown[]>;

const TensorData = z
  .union([AnyArray, z.number(), z.string(), z.boolean()])
  .describe(
    'Elements, flat in row-major order or nested as the shape says. 64-bit integers beyond 2^53 are decimal strings; NaN and infinities are the strings "NaN", "Infinity", "-Infinity"; BYTES elements are UTF-8 strings.',
  );

export const Tensor = z
  .strictObject({
    datatype: Datatype,
    shape: Shape,
    data: TensorData.optional(),
    b64: z
      .string()
      .optional()
      .describe(
        'Base64 of the raw little-endian elements; for BYTES each element has a uint32 length before it.',
      ),
  })
  .refine((tensor) => (tensor.data === undefined) !== (tensor.b64 === undefined), {
    error: 'a tensor has exactly one of "data" and "b64"',
  })
  .meta({ id: 'Tensor' });
export type Tensor = z.infer<typeof Tensor>;

/**
 * An input as people write it: a Tensor, or a bare value whose datatype and shape follow from the model's signature
 * (a number, a string, nested arrays). For an image input a string is base64 or a data: URL.
 */
export const InputValue = z
  .union([Tensor, AnyArray, z.number(), z.string(), z.boolean()])
  .describe('A Tensor, or a bare value whose datatype follows from the signature.')
  .meta({ id: 'InputValue' });
export type InputValue = z.infer<typeof InputValue>;

/** A tensor in memory: raw little-endian bytes, row-major; BYTES elements are length-prefixed. */
export interface RawTensor {
  name: string;
  datatype: Datatype;
  shape: number[];
  bytes: Uint8Array;
}
