/**
 * A binary body in the layout of the Open Inference Protocol: a JSON header, then the raw tensors in the order in which
 * the header names them. The header is an InferenceRequest whose `inputs` (of the request or of each item) are an array
 * of tensors. It is strict: the protocol's own `id` and `outputs` are not taken; the id here is `request_id`.
 */
import type { GivenInput } from '@remuda/core/requests/input-tensor';
import type { GivenItem } from '@remuda/core/requests/validate-inputs';
import {
  cutTensors,
  FRAME_PREFIX_BYTES,
  FrameTensor,
  frameInPlace,
  InvalidInputError,
  LIMITS,
  RequestItem,
  RequestOptions,
  refuse,
  refuseLeftOver,
  splitBinaryBody,
  violationsOf,
} from '@remuda/schemas';
import * as z from 'zod';
import { bytesContent, jsonContent } from '../idempotency-key.js';
import type { ParsedBody } from './parsed-body.js';

type Path = readonly PropertyKey[];

const header = { inputs: FrameTensor.array(), id: RequestItem.shape.id };

/** As it is documented. */
export const BinaryHeader = RequestOptions.extend({
  inputs: header.inputs.optional(),
  items: z
    .array(z.strictObject({ id: header.id, inputs: header.inputs }))
    .min(1)
    .max(LIMITS.items)
    .optional(),
})
  .describe('The JSON header of a binary body: exactly one of inputs and items.')
  .meta({ id: 'BinaryHeader' });

/** As it is parsed: the tensors are checked where they are cut out of the body. */
const HeaderShell = RequestOptions.extend({
  inputs: z.unknown().optional(),
  items: z
    .array(z.strictObject({ id: header.id, inputs: z.unknown() }))
    .min(1)
    .max(LIMITS.items)
    .optional(),
}).refine((shell) => (shell.inputs === undefined) !== (shell.items === undefined), {
  error: 'exactly one of "inputs" and "items"',
});

/**
 * Longest header that is stored as it came, with whatever stands in it beside the tensors: runners parse it again, and
 * must not be held up by it.
 */
const MOST_HEADER_BYTES_STORED = 4096;

/**
 * @param withRoom FRAME_PREFIX_BYTES free bytes, then the body
 * @param headerLength value of Inference-Header-Content-Length
 */
export function parseBinaryBody(withRoom: Buffer, headerLength: string | undefined): ParsedBody {
  if (headerLength === undefined) {
    refuse(
      ['Inference-Header-Content-Length'],
      'the length of the JSON header of a binary body, in bytes',
      'no such header',
      'malformed_frame',
    );
  }
  const { header: described, rest } = splitBinaryBody(withRoom.subarray(FRAME_PREFIX_BYTES), headerLength);
  const parsed = HeaderShell.safeParse(described);
  if (!parsed.success) throw new InvalidInputError(violationsOf(parsed.error, described), 'invalid_request');
  const { inputs, items, ...options } = parsed.data;
  const given = items ? cutItems(items, rest) : [cutItem(null, inputs, rest, ['inputs'], 0)];
  refuseLeftOver(rest, given.at(-1)?.end ?? 0);
  const [first] = given;
  const length = Number(headerLength);
  if (!items && first && length <= MOST_HEADER_BYTES_STORED && first.inputs.every(isBinary))
    first.frame = frameInPlace(withRoom, length);
  const content = () => `${jsonContent(described)} ${bytesContent(rest)}`;
  return { options, content, place: () => ({ hasItems: items !== undefined, items: given }) };
}

type CutItem = GivenItem & { end: number };

function isBinary(given: GivenInput): boolean {
  return 'tensor' in given && given.tensor.bytes !== undefined;
}

function cutItems(items: readonly { id?: string; inputs?: unknown }[], rest: Uint8Array): CutItem[] {
  let from = 0;
  return items.map(({ id, inputs }, index) => {
    const item = cutItem(id ?? null, inputs, rest, ['items', index, 'inputs'], from);
    from = item.end;
    return item;
  });
}

function cutItem(id: string | null, inputs: unknown, rest: Uint8Array, path: Path, from: number): CutItem {
  const { tensors, end } = cutTensors(inputs, rest, [...path], from);
  const given = tensors.map((tensor, index) => ({ name: tensor.name, path: [...path, index], tensor }));
  return { id, inputs: given, path, end };
}
