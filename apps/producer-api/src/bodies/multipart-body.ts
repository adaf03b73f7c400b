/**
 * multipart/form-data: image files in parts named after the model's image input, and an optional JSON part `request`
 * with RequestOptions. One file is the request itself; several are items, each with its file name as id.
 */
import type { GivenInput } from '@remuda/core/requests/input-tensor';
import {
  InvalidInputError,
  LIMITS,
  type ModelSignature,
  parseJson,
  RequestOptions,
  refuse,
  violationsOf,
} from '@remuda/schemas';
import type { FastifyRequest } from 'fastify';
import { bytesContent, jsonContent } from '../idempotency-key.js';
import { findDuplicateKey } from './duplicate-keys.js';
import { onlyImageInput } from './image-body.js';
import type { ParsedBody, PlacedInputs } from './parsed-body.js';

const OPTIONS_PART = 'request';

interface FilePart {
  field: string;
  filename: string | undefined;
  bytes: Buffer;
}

/** Reads the whole form. @throws InvalidInputError; payload_too_large when all files together go over the limit */
export async function parseMultipartBody(request: FastifyRequest, maxBytes: number): Promise<ParsedBody> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > maxBytes) refuse([], `at most ${maxBytes} bytes`, `${announced}`, 'payload_too_large');
  const files: FilePart[] = [];
  let options: RequestOptions = {};
  let left = maxBytes;
  for await (const part of request.parts()) {
    if (part.type === 'file' && part.fieldname !== OPTIONS_PART) {
      const bytes = await part.toBuffer();
      left -= bytes.byteLength;
      if (left < 0)
        refuse([], `at most ${maxBytes} bytes`, 'more in all files together', 'payload_too_large');
      files.push({ field: part.fieldname, filename: part.filename || undefined, bytes });
    } else if (part.fieldname === OPTIONS_PART) {
      options = readOptions(part.type === 'file' ? (await part.toBuffer()).toString('utf8') : part.value);
    } else {
      refuse(
        [part.fieldname],
        `file parts, and the JSON part "${OPTIONS_PART}"`,
        'a text part',
        'invalid_request',
      );
    }
  }
  return {
    options,
    content: () => contentOf(options, files),
    place: (signature) => placeFiles(files, signature),
  };
}

/** The boundary and the headers of the parts say nothing. */
function contentOf(options: RequestOptions, files: readonly FilePart[]): string {
  const names = files.map(({ field, filename = null }) => [field, filename]);
  return `${jsonContent([options, names])} ${bytesContent(...files.map(({ bytes }) => bytes))}`;
}

/** The form parser has parsed a part of type application/json already. */
function readOptions(part: unknown): RequestOptions {
  const value = typeof part === 'string' ? parseJson(part) : part;
  const doubled = typeof part === 'string' ? findDuplicateKey(part) : undefined;
  if (doubled) {
    refuse(
      [OPTIONS_PART, ...doubled],
      'each key once',
      `"${doubled.at(-1)}" a second time`,
      'invalid_request',
    );
  }
  const parsed = RequestOptions.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(violationsOf(parsed.error, value, [OPTIONS_PART]), 'invalid_request');
}

function placeFiles(files: readonly FilePart[], signature: ModelSignature): PlacedInputs {
  onlyImageInput(signature, 'A form');
  if (files.length > LIMITS.items) {
    refuse([], `at most ${LIMITS.items} files`, `${files.length}`, 'invalid_request');
  }
  const [only] = files;
  if (files.length <= 1) {
    const inputs = only ? [fileInput(only, ['inputs'])] : [];
    return { hasItems: false, items: [{ id: null, path: ['inputs'], inputs }] };
  }
  const items = files.map((file, index) => {
    const path = ['items', index, 'inputs'];
    return { id: file.filename?.slice(0, 128) ?? null, path, inputs: [fileInput(file, path)] };
  });
  return { hasItems: true, items };
}

function fileInput({ field, bytes }: FilePart, path: PropertyKey[]): GivenInput {
  return { name: field, path: [...path, field], files: [bytes] };
}
