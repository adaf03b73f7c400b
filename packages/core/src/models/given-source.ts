/**
 * The source of a model as it was given, a line of text or an object, as it is kept in the desired state. What a source
 * may be is checked where it is fetched too: workers trust nothing that lies in Redis.
 */
import { InvalidInputError, violationsOf } from '@remuda/schemas';
import * as z from 'zod';

const Source = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('local'), path: z.string().min(1) }),
  z.strictObject({
    type: z.literal('http'),
    url: z.url({ protocol: /^https?$/ }),
    headers: z.record(z.string(), z.string()).optional(),
    sha256: z.string().optional(),
  }),
  z.strictObject({
    type: z.literal('s3'),
    bucket: z.string().min(3),
    prefix: z.string(),
    region: z.string().optional(),
    endpoint: z.string().optional(),
    force_path_style: z.boolean().optional(),
  }),
]);

/** @throws InvalidInputError with the path */
export function givenSource(given: string | Record<string, unknown>): Record<string, unknown> {
  const value = typeof given === 'string' ? fromText(given) : given;
  const parsed = Source.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(violationsOf(parsed.error, value, ['source']), 'invalid_request');
}

/** In short, without what may be secret. */
export function shownSource(source: Record<string, unknown>): string {
  const { type, path, url, bucket, prefix } = source as Record<string, string>;
  if (type === 'local') return path ?? '';
  if (type === 's3') return `s3://${bucket}/${prefix}`;
  return (url ?? '').replace(/\?.*$/, '');
}

function fromText(text: string): Record<string, unknown> {
  if (/^https?:/.test(text)) return { type: 'http', url: text };
  const s3 = /^s3:\/\/([^/]+)\/?(.*)$/.exec(text);
  return s3 ? { type: 's3', bucket: s3[1], prefix: s3[2] } : { type: 'local', path: text };
}
