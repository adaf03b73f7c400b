/**
 * Which bodies are taken, and how they reach the routes: JSON as a parsed value, binary tensors and images as bytes, a
 * form as a stream. What a route does not take is 415 with the types that it does.
 */
import multipart from '@fastify/multipart';
import { RemudaError } from '@remuda/core/errors';
import { LIMITS } from '@remuda/schemas';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parseBinaryBody } from './binary-body.js';
import { type ImageQuery, parseImageBody } from './image-body.js';
import { parseJsonRequest, parseJsonText } from './json-body.js';
import { parseMultipartBody } from './multipart-body.js';
import type { ParsedBody } from './parsed-body.js';
import { readBodyWithRoom } from './read-body.js';

export const REQUEST_TYPES = [
  'application/json',
  'application/octet-stream',
  'multipart/form-data',
  'image/*',
] as const;
const JSON_ONLY = ['application/json'] as const;

export function registerContentTypes(
  app: FastifyInstance,
  { maxBodyBytes, maxJsonBytes }: { maxBodyBytes: number; maxJsonBytes: number },
): void {
  app.removeAllContentTypeParsers();
  const json: { parseAs: 'buffer'; bodyLimit: number } = { parseAs: 'buffer', bodyLimit: maxJsonBytes };
  app.addContentTypeParser<Buffer>('application/json', json, (_request, body, done) => {
    try {
      // A DELETE with this type and no body is common, and no fault; a route that needs a body says so itself.
      done(null, body.length === 0 ? undefined : parseJsonText(body));
    } catch (error) {
      done(error as Error);
    }
  });
  app.addContentTypeParser('application/octet-stream', (request, payload, done) =>
    readBodyWithRoom(request, payload, maxBodyBytes, done),
  );
  const image = /^image\/[\w.+-]+/;
  app.addContentTypeParser(image, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.register(multipart, {
    limits: { fileSize: maxBodyBytes, files: LIMITS.items + 1, parts: LIMITS.items + 2, fields: 2 },
  });
}

/** The body of a submission, whichever way it came. @throws InvalidInputError, RemudaError */
export function parseRequestBody(
  request: FastifyRequest<{ Querystring: ImageQuery }>,
  maxBodyBytes: number,
): ParsedBody | Promise<ParsedBody> {
  const type = mediaType(request);
  if (type.startsWith('image/')) return parseImageBody(request.body as Buffer, request.query);
  refuseQuery(request);
  if (type === 'application/json') return parseJsonRequest(jsonBody(request));
  if (type === 'application/octet-stream') {
    const length = request.headers['inference-header-content-length'];
    return parseBinaryBody(request.body as Buffer, length as string | undefined);
  }
  if (type === 'multipart/form-data') return parseMultipartBody(request, maxBodyBytes);
  throw unsupportedType(request.headers['content-type'], REQUEST_TYPES);
}

/** The body of a route that takes JSON alone. @throws RemudaError, InvalidInputError */
export function jsonBody(request: FastifyRequest): unknown {
  if (mediaType(request) !== 'application/json')
    throw unsupportedType(request.headers['content-type'], JSON_ONLY);
  // Says that the body is empty.
  return request.body === undefined ? parseJsonText(Buffer.alloc(0)) : request.body;
}

export function unsupportedType(received: string | undefined, accepted: readonly string[]): RemudaError {
  return new RemudaError(
    'unsupported_media_type',
    `expected a body of ${accepted.join(', ')}, received ${received ?? 'no content type'}`,
    { accepted },
  );
}

function mediaType({ headers }: FastifyRequest): string {
  const type = headers['content-type'] ?? '';
  const end = type.indexOf(';');
  return (end < 0 ? type : type.slice(0, end)).trim().toLowerCase();
}

function refuseQuery({ query }: FastifyRequest<{ Querystring: ImageQuery }>): void {
  for (const key in query) {
    throw new RemudaError(
      'invalid_request',
      `query.${key}: options stand in the query of an image body only; put them into the body`,
    );
  }
}
