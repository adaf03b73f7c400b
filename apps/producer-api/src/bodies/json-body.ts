/**
 * A JSON body: text to value with the place of every fault, and an InferenceRequest to its parts. The one zod parse of
 * a request is here; elements of tensors are looked at once, by the codec.
 */
import { isUtf8 } from 'node:buffer';
import { imageInput } from '@remuda/core/requests/image-text';
import type { GivenInput } from '@remuda/core/requests/input-tensor';
import type { GivenItem } from '@remuda/core/requests/validate-inputs';
import {
  InferenceRequest,
  type InputValue,
  InvalidInputError,
  type ModelSignature,
  parseJson,
  refuse,
  violationsOf,
} from '@remuda/schemas';
import { jsonContent } from '../idempotency-key.js';
import { findDuplicateKey } from './duplicate-keys.js';
import type { ParsedBody } from './parsed-body.js';

type Path = readonly PropertyKey[];

/** @throws InvalidInputError malformed_json with line and column, invalid_request for a key that stands twice */
export function parseJsonText(bytes: Buffer): unknown {
  if (bytes.byteLength === 0) refuse([], 'valid JSON', 'an empty body', 'malformed_json');
  if (!isUtf8(bytes)) refuse([], 'JSON in UTF-8', 'bytes that are not UTF-8', 'malformed_json');
  const text = bytes.toString('utf8');
  const value = parseJson(text);
  const doubled = findDuplicateKey(text);
  if (doubled) {
    const code = doubled.at(-2) === 'inputs' ? 'invalid_input' : 'invalid_request';
    refuse(doubled, 'each key once', `"${doubled.at(-1)}" a second time`, code);
  }
  return value;
}

/** @param path where the request stands in the body; [] but in a batch */
export function parseJsonRequest(body: unknown, path: Path = []): ParsedBody {
  const parsed = InferenceRequest.safeParse(body);
  if (!parsed.success) {
    throw new InvalidInputError(violationsOf(parsed.error, body, path), 'invalid_request');
  }
  const { inputs, items, ...options } = parsed.data;
  return {
    options,
    content: () => jsonContent(body),
    place(signature) {
      if (inputs)
        return { hasItems: false, items: [givenItem(null, inputs, [...path, 'inputs'], signature)] };
      const given = (items ?? []).map((item, index) =>
        givenItem(item.id ?? null, item.inputs, [...path, 'items', index, 'inputs'], signature),
      );
      return { hasItems: true, items: given };
    },
  };
}

function givenItem(
  id: string | null,
  values: Record<string, InputValue>,
  path: Path,
  signature: ModelSignature,
): GivenItem {
  const inputs: GivenInput[] = [];
  for (const name of Object.keys(values)) {
    const given = { name, path: [...path, name], value: values[name] as InputValue };
    const isImage = signature.inputs.some((input) => input.kind === 'image' && input.name === name);
    inputs.push(isImage ? imageInput(given) : given);
  }
  return { id, inputs, path };
}
