/** A raw image as the body, for models with exactly one input and that an image; options stand in the query. */
import { RemudaError } from '@remuda/core/errors';
import { LIMITS, type ModelSignature, RequestMetadata, RequestOptions } from '@remuda/schemas';
import * as z from 'zod';
import { bytesContent, jsonContent } from '../idempotency-key.js';
import { integerText } from '../query.js';
import type { ParsedBody } from './parsed-body.js';

/** What a request with an image body can say beside the image. */
export const ImageQuery = z.strictObject({
  request_id: RequestOptions.shape.request_id,
  version: RequestOptions.shape.version,
  device: RequestOptions.shape.device,
  priority: integerText(0, 9).optional().describe('metadata.priority'),
  timeout_ms: integerText(1, LIMITS.timeoutMs).optional().describe('metadata.timeout_ms'),
  start_by: RequestMetadata.shape.start_by,
  finish_timeout_ms: integerText(1, LIMITS.timeoutMs).optional().describe('metadata.finish_timeout_ms'),
  finish_by: RequestMetadata.shape.finish_by,
  result_ttl_s: integerText(1, LIMITS.resultTtlSeconds).optional().describe('metadata.result_ttl_s'),
});
export type ImageQuery = z.infer<typeof ImageQuery>;

export function parseImageBody(body: Buffer, query: ImageQuery): ParsedBody {
  const {
    priority = 5,
    timeout_ms,
    start_by,
    finish_timeout_ms,
    finish_by,
    result_ttl_s,
    ...options
  } = query;
  const times = { timeout_ms, start_by, finish_timeout_ms, finish_by };
  return {
    content: () => `${jsonContent(query)} ${bytesContent(body)}`,
    options: { ...options, metadata: { priority, ...times, result_ttl_s } },
    place(signature) {
      const name = onlyImageInput(signature, 'An image body');
      const inputs = [{ name, path: ['inputs', name], files: [body] }];
      return { hasItems: false, items: [{ id: null, path: ['inputs'], inputs }] };
    },
  };
}

/** @throws RemudaError unsupported_media_type for a model that takes anything else */
export function onlyImageInput({ inputs, model }: ModelSignature, what: string): string {
  const [first, ...others] = inputs;
  if (first?.kind === 'image' && others.length === 0) return first.name;
  const names = inputs.map(({ name, kind, datatype }) => `${name} (${kind === 'image' ? kind : datatype})`);
  throw new RemudaError(
    'unsupported_media_type',
    `${what} is for models whose one input is an image; ${model} takes ${names.join(', ')}. Send application/json or a binary body`,
  );
}
