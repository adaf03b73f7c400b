/**
 * OpenAPI 3.1 out of the zod schemas: the same that validate. Bodies and request headers are documented here and
 * parsed by the routes themselves, since one route takes several kinds of body; queries, paths and answers stand in
 * the schema of each route.
 */
import swagger, { type SwaggerTransform } from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import { ERROR_CATALOGUE, Problem } from '@remuda/schemas';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import * as z from 'zod';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A call that is refused is told to log and metrics. */
    submits?: boolean;
    /** For the documentation: bodies by content type. */
    bodies?: Record<string, z.ZodType>;
    /** For the documentation: request headers. */
    headers?: z.ZodObject;
  }
}

const DESCRIPTION =
  'A durable inference fleet for ONNX models. Send a request, get 202 and a record at once; poll it, or wait for it with `Prefer: wait=30`. Errors are application/problem+json with a code from a closed list.';

export function registerOpenapi(app: FastifyInstance): void {
  app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Remuda', description: DESCRIPTION, version: '0.1.0', license: { name: 'Apache-2.0' } },
      components: {
        securitySchemes: {
          key: {
            type: 'http',
            scheme: 'bearer',
            description: 'An API key. A call may be answered with 401, 403 or 429.',
          },
        },
      },
      // The empty one: a server may let everybody in.
      security: [{ key: [] }, {}],
      tags: [
        { name: 'requests', description: 'Send, watch, fetch and cancel.' },
        { name: 'models', description: 'What can be run.' },
        {
          name: 'batches',
          description: 'Files of rows in, files of answers out; as the OpenAI API has them, and more.',
        },
        { name: 'webhooks', description: 'Who is told of the end of requests, and how that went.' },
        { name: 'dead letters', description: 'What was given up, to be looked at and run again.' },
        { name: 'admin', description: 'What is wanted of each model: versions, traffic, loading.' },
        { name: 'access', description: 'API keys, tenants, and what was done by whom.' },
        { name: 'server', description: 'The fleet and this server.' },
      ],
    },
    transform,
    transformObject: jsonSchemaTransformObject,
  });
  app.register(swaggerUi, { routePrefix: '/docs', staticCSP: true });
}

export function openapiRoute(app: FastifyInstance): void {
  let text: string | undefined;
  app.get('/openapi.json', { schema: { hide: true }, config: { scope: 'public' } }, (_request, reply) => {
    text ??= JSON.stringify(app.swagger());
    return reply.type('application/json').send(text);
  });
}

const transform: SwaggerTransform = (document) => {
  const { schema, url } = jsonSchemaTransform(document as Parameters<typeof jsonSchemaTransform>[0]);
  const { bodies, headers, scope } = document.route.config ?? {};
  const toJson = (part: 'body' | 'headers', zod: z.ZodType): unknown => {
    const only = { ...document, schema: { [part]: zod } };
    return (
      jsonSchemaTransform(only as Parameters<typeof jsonSchemaTransform>[0]).schema as Record<string, unknown>
    )[part];
  };
  const content =
    bodies &&
    Object.fromEntries(
      Object.entries(bodies).map(([type, body]) => [type, { schema: toJson('body', body) }]),
    );
  return {
    url,
    schema: {
      ...(schema as Record<string, unknown>),
      ...(content && { body: { content } }),
      ...(headers && { headers: toJson('headers', headers) }),
      ...(scope === 'public' ? { security: [] } : {}),
    },
  };
};

/** Bytes as they are. */
export function binary(description: string): z.ZodType {
  return z.string().meta({ format: 'binary', description });
}

type Answer = { description: string; content: Record<string, { schema: z.ZodType }> };

export function json(description: string, schema: z.ZodType): Answer {
  return { description, content: { 'application/json': { schema } } };
}

/** An answer without a body. */
export function nothing(description: string): z.ZodType {
  return z.null().describe(description);
}

/** Problems by status, for the answers of a route. */
export function problems(...statuses: number[]): Record<number, Answer> {
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      { description: codesOf(status), content: { 'application/problem+json': { schema: Problem } } },
    ]),
  );
}

function codesOf(status: number): string {
  const codes = Object.entries(ERROR_CATALOGUE).filter(([, entry]) => entry.status === status);
  return codes.map(([code]) => code).join(', ');
}
