/** GET /v1/requests/{id}/result: the outcome of a request that has ended, as JSON or binary. */
import { sightOf } from '@remuda/core/access/caller';
import { InferenceResult, RequestRecord } from '@remuda/schemas';
import * as z from 'zod';
import { sendNotEnded, sendResult } from '../answers.js';
import type { App, ServerDeps } from '../deps.js';
import { resultFormat } from '../negotiation.js';
import { binary, json, problems } from '../openapi.js';
import { IdParams, knownForm } from './requests.js';

const ResultQuery = z.strictObject({
  tensors: z
    .enum(['data', 'b64'])
    .optional()
    .describe(
      'Form of tensors in JSON: elements (the default), or base64 of the raw bytes, which is much faster.',
    ),
});

const SCHEMA = {
  tags: ['requests'],
  summary: 'The result of a request',
  params: IdParams,
  querystring: ResultQuery,
  response: {
    200: {
      description: 'The request has ended; binary where Accept asks for it.',
      content: {
        'application/json': { schema: InferenceResult },
        'application/octet-stream': { schema: binary('JSON header, then the output tensors.') },
      },
    },
    202: json('Not ended yet: ask again after Retry-After seconds.', RequestRecord),
    ...problems(404, 406, 422, 503),
  },
};

const HEADERS = z.object({
  accept: z.string().optional().describe('application/json or application/octet-stream.'),
});

export function resultRoutes(app: App, deps: ServerDeps): void {
  app.get(
    '/v1/requests/:id/result',
    { schema: SCHEMA, config: { scope: 'read', headers: HEADERS } },
    async (request, reply) => {
      const id = knownForm(request.params.id);
      const sight = sightOf(request.caller);
      const format = resultFormat(request.headers.accept);
      const raw = await deps.useCases.result(id, sight);
      if (!raw) return sendNotEnded(reply, await deps.useCases.get(id, sight));
      return sendResult(reply, raw, { format, tensors: request.query.tensors ?? 'data', by: 'poll' }, deps);
    },
  );
}
