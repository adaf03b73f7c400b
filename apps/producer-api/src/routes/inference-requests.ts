/**
 * POST /v1/models/{model}/requests: parse, submit, 202. File 2 of the tour. What is wrong with a request is found here,
 * before anything is stored; what the 202 promises stands in the next file, core/requests/submit-request.ts.
 */
import { InferenceRequest, InferenceResult, RequestOptions, RequestRecord } from '@remuda/schemas';
import * as z from 'zod';
import { sendRecord, sendWhenEnded } from '../answers.js';
import { parseRequestBody } from '../bodies/content-types.js';
import { ImageQuery } from '../bodies/image-body.js';
import type { App, ServerDeps } from '../deps.js';
import { type Created, IDEMPOTENCY_KEY, once } from '../idempotency-key.js';
import { readPreferences, resultFormat } from '../negotiation.js';
import { binary, json, problems } from '../openapi.js';
import { toSubmission } from '../submission.js';

const SCHEMA = {
  tags: ['requests'],
  summary: 'Send a request',
  description:
    'The answer is 202 with the record as soon as the request is stored. With `Prefer: wait=s` the call is held until the request has ended (200, the result) or the time is up (202, the record). An input is a Tensor, or a bare value that takes its datatype from the signature and its shape from its nesting, where a missing batch axis means one row. An image is base64 or a data: URL.',
  params: z.object({ model: z.string().describe('Name of a model.') }),
  querystring: ImageQuery,
  response: {
    200: {
      description: 'Ended within the time of Prefer: wait. Binary where Accept asks for it.',
      content: {
        'application/json': { schema: InferenceResult },
        'application/octet-stream': { schema: binary('JSON header, then the output tensors.') },
      },
    },
    202: json('Accepted. Location is the URL of the record.', RequestRecord),
    ...problems(400, 404, 406, 409, 413, 415, 422, 429, 503),
  },
};

const BODIES = {
  'application/json': InferenceRequest,
  'application/octet-stream': binary(
    'The binary layout of the Open Inference Protocol: a JSON header (schema BinaryHeader), whose length stands in Inference-Header-Content-Length, then the raw little-endian tensors.',
  ),
  'multipart/form-data': z
    .object({
      image: binary('Image files, in parts named after the image input.'),
      request: RequestOptions.optional(),
    })
    .describe(
      'For models whose one input is an image. Several files are items, each with its file name as id.',
    ),
  'image/*': binary('One image file, for models whose one input is an image; options stand in the query.'),
};

const HEADERS = z.object({
  prefer: z.string().optional().describe('wait=30 holds the call for up to that many seconds (at most 60).'),
  accept: z
    .string()
    .optional()
    .describe('application/json or application/octet-stream: the form of the result.'),
  'inference-header-content-length': z
    .string()
    .optional()
    .describe('Of a binary body: bytes of its JSON header.'),
  'idempotency-key': z.string().optional().describe(IDEMPOTENCY_KEY),
  traceparent: z.string().optional().describe('W3C trace context; without it a trace id is made.'),
});

export function inferenceRequestRoutes(app: App, deps: ServerDeps): void {
  const config = { scope: 'submit' as const, submits: true, bodies: BODIES, headers: HEADERS };
  app.post('/v1/models/:model/requests', { schema: SCHEMA, config }, async (request, reply) => {
    // Who may not see results is not given one either: then the preference is not applied.
    const mayRead = request.caller.scopes.has('read');
    const { waitMs, applied } = readPreferences(mayRead ? request.headers.prefer : undefined);
    const format = resultFormat(request.headers.accept);
    const body = await parseRequestBody(request, deps.maxBodyBytes);
    const context = { model: request.params.model, lane: 'interactive' as const, path: [] };
    const { traceId, caller } = request;
    const { webhookAllowed } = deps;
    const record = await once(request, reply, deps, {
      content: () => body.content(),
      make: async (call) => {
        const reserved = call?.reserve(0);
        const submission = await toSubmission(
          body,
          { ...context, traceId, caller, reserved, webhookAllowed },
          deps.useCases,
        );
        return accepted((await deps.useCases.submit(submission)).record);
      },
    });
    if (applied) reply.header('preference-applied', applied);
    if (waitMs > 0) return sendWhenEnded(reply, record, waitMs, format, deps);
    return sendRecord(reply, record, 202);
  });
}

function accepted(record: RequestRecord): Created<RequestRecord> {
  return {
    status: 202,
    headers: { location: record.urls.self },
    body: record,
    requestIds: [record.request_id],
  };
}
