/** A source as one line of text, as it is typed and shown. A spec has more: headers have no place in a line. */
import { HttpSource, LocalSource, type ModelSourceSpec, S3Source } from '@remuda/schemas';
import type * as z from 'zod';
import { RemudaError } from '../../errors.js';

const EXPECTED =
  'expected a folder (./models/name), https://host/path/manifest.json, https://host/model.onnx#sha256=<64 hex digits>, or s3://bucket/prefix?region=…&endpoint=…';
const S3_PARAMETERS = ['region', 'endpoint', 'force_path_style'];

/** @throws RemudaError invalid_request that says what was expected */
export function parseSourceUri(text: string): ModelSourceSpec {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase();
  if (text.trim() === '') throw fault(text, EXPECTED);
  if (scheme === undefined) return checked(text, LocalSource, { type: 'local', path: text });
  if (scheme === 'http' || scheme === 'https') return parseHttp(text);
  if (scheme === 's3') return parseS3(text);
  throw fault(text, `"${scheme}:" is not a kind of source; ${EXPECTED}`);
}

/** The line for a spec, without headers and without the query of an address, which may hold a signature. */
export function sourceText(spec: ModelSourceSpec): string {
  if (spec.type === 'local') return spec.path;
  if (spec.type === 'http') return shownUrl(spec.url);
  return `s3://${spec.bucket}/${spec.prefix}`;
}

export function shownUrl(url: string | URL): string {
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname}${search === '' ? '' : '?…'}`;
}

function parseHttp(text: string): ModelSourceSpec {
  const [url = '', fragment] = text.split('#');
  if (fragment === undefined && /\.onnx(\?|$)/.test(url))
    throw fault(text, 'one file needs #sha256=<64 hex digits> after it; or give the address of a manifest');
  if (fragment === undefined) return checked(text, HttpSource, { type: 'http', url });
  const sha256 = /^sha256=(.*)$/.exec(fragment)?.[1];
  if (sha256 === undefined) throw fault(text, `after "#" expected sha256=<64 hex digits>`);
  return checked(text, HttpSource, { type: 'http', url, sha256 });
}

function parseS3(text: string): ModelSourceSpec {
  const parts = /^s3:\/\/([^/?#]+)\/?([^?#]*)(?:\?([^#]*))?$/i.exec(text);
  if (!parts) throw fault(text, 'expected s3://bucket/prefix?region=…&endpoint=…');
  const [, bucket, prefix = '', query = ''] = parts;
  const parameters = new URLSearchParams(query);
  for (const name of parameters.keys()) {
    if (S3_PARAMETERS.includes(name)) continue;
    throw fault(text, `"${name}" is not a parameter; known are ${S3_PARAMETERS.join(', ')}`);
  }
  const pathStyle = parameters.get('force_path_style');
  if (pathStyle !== null && pathStyle !== 'true' && pathStyle !== 'false')
    throw fault(text, 'force_path_style: expected true or false');
  return checked(text, S3Source, {
    type: 's3',
    bucket,
    prefix: prefix.replace(/^\/+|\/+$/g, ''),
    region: parameters.get('region') ?? undefined,
    endpoint: parameters.get('endpoint') ?? undefined,
    force_path_style: pathStyle === null ? undefined : pathStyle === 'true',
  });
}

function checked<Spec extends ModelSourceSpec>(text: string, schema: z.ZodType<Spec>, given: unknown): Spec {
  const parsed = schema.safeParse(given);
  if (parsed.success) return dropUndefined(parsed.data);
  const issue = parsed.error.issues[0];
  throw fault(text, `${issue?.path.join('.')}: ${issue?.message}`);
}

function dropUndefined<Spec extends object>(spec: Spec): Spec {
  return Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)) as Spec;
}

function fault(text: string, what: string): RemudaError {
  // A password that was typed goes no further.
  const shown = text.replace(/\/\/[^/?#]*@/, '//…@');
  return new RemudaError('invalid_request', `source "${shown}": ${what}`);
}
