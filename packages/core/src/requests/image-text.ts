/** Images in JSON: base64 or a data: URL, alone, in an array, or as the elements of a BYTES tensor; here they become files. */

import { decodeBase64, describeValue, type InputValue, refuse } from '@remuda/schemas';
import type { GivenInput } from './input-tensor.js';

type Path = readonly PropertyKey[];

const EXPECTED = 'an image file in base64, or a data:image/…;base64 URL';
const DATA_URL = /^data:image\/[\w.+-]+(?:;[\w.+-]+=[^;,]*)*;base64,/i;

/** The files of an image input. What cannot hold any is left as it is: the check against the signature names it. */
export function imageInput(given: { name: string; path: Path; value: InputValue }): GivenInput {
  const { name, path, value } = given;
  if (typeof value === 'string') return { name, path, files: [imageFile(value, path)] };
  if (Array.isArray(value)) return { name, path, files: imageFiles(value, path) };
  if (typeof value !== 'object' || value.datatype !== 'BYTES' || value.data === undefined) return given;
  const at = [...path, 'data'];
  const files = Array.isArray(value.data) ? imageFiles(value.data, at) : [imageFile(value.data, at)];
  if (value.shape.length !== 1 || value.shape[0] !== files.length) {
    refuse(
      [...path, 'shape'],
      `[${files.length}], as many as there are images`,
      `[${value.shape.join(', ')}]`,
    );
  }
  return { name, path, files };
}

function imageFiles(values: readonly unknown[], path: Path): Uint8Array[] {
  return values.map((value, index) => imageFile(value, [...path, index]));
}

/** The bytes of one image file. @throws InvalidInputError */
export function imageFile(value: unknown, path: Path): Uint8Array {
  if (typeof value !== 'string') refuse(path, EXPECTED, describeValue(value));
  if (!value.startsWith('data:')) return decodeBase64(value, path);
  const prefix = DATA_URL.exec(value)?.[0];
  if (prefix === undefined) refuse(path, EXPECTED, `a URL that begins with "${value.slice(0, 40)}"`);
  return decodeBase64(value.slice(prefix.length), path);
}
