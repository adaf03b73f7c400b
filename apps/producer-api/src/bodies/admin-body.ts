/** Bodies of the admin API: JSON, checked by the schema of what is sent. */
import { InvalidInputError, violationsOf } from '@remuda/schemas';
import type { FastifyRequest } from 'fastify';
import type * as z from 'zod';
import { jsonBody } from './content-types.js';

/** @throws InvalidInputError */
export function parsed<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
  path: readonly PropertyKey[] = [],
): z.output<Schema> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  throw new InvalidInputError(violationsOf(result.error, body, path), 'invalid_request');
}

/** A POST without a body, whatever type it gives. */
export function optionalBody(request: FastifyRequest): unknown {
  return request.body === undefined ? {} : jsonBody(request);
}
