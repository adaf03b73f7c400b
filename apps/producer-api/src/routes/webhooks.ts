/** Webhooks: the log of deliveries, a delivery once more. Endpoints and the secret stand in webhook-endpoints.ts. */
import { sightOf } from '@remuda/core/access/caller';
import { WebhookDelivery, WebhookDeliveryDetail, WebhookDeliveryList } from '@remuda/schemas';
import * as z from 'zod';
import type { App, ServerDeps } from '../deps.js';
import { json, problems } from '../openapi.js';
import { IdParams, knownForm } from './requests.js';

const DeliveryParams = z.object({ id: z.string().describe('The webhook-id of a delivery.') });

const READ = { scope: 'read' } as const;

export function webhookRoutes(app: App, deps: ServerDeps): void {
  logRoute(app, deps);
  deliveryRoute(app, deps);
  redeliverRoute(app, deps);
}

function logRoute(app: App, { webhooks, useCases }: ServerDeps): void {
  const schema = {
    tags: ['webhooks'],
    summary: 'The webhooks of a request, and how each attempt went',
    params: IdParams,
    response: {
      200: json('One for each address, oldest first; none where nobody asked.', WebhookDeliveryList),
      ...problems(401, 403, 404, 429, 503),
    },
  };
  app.get('/v1/requests/:id/webhooks', { schema, config: READ }, async (request, reply) => {
    const id = knownForm(request.params.id);
    const deliveries = await webhooks.deliveriesOf(id, sightOf(request.caller));
    // Deliveries outlive their request; where there are none, whether there is such a request makes the difference.
    if (deliveries.length === 0) await useCases.get(id, sightOf(request.caller));
    return reply.send({ deliveries });
  });
}

function deliveryRoute(app: App, { webhooks }: ServerDeps): void {
  const schema = {
    tags: ['webhooks'],
    summary: 'One delivery, with the body that is sent',
    params: DeliveryParams,
    response: { 200: json('As it is now.', WebhookDeliveryDetail), ...problems(401, 403, 404, 429, 503) },
  };
  app.get('/v1/webhooks/:id', { schema, config: READ }, async (request, reply) =>
    reply.send(await webhooks.delivery(request.params.id, sightOf(request.caller))),
  );
}

function redeliverRoute(app: App, { webhooks }: ServerDeps): void {
  const schema = {
    tags: ['webhooks'],
    summary: 'Send a delivery once more',
    description:
      'Begins a new round of attempts, the first at once, whatever came of those before. webhook-id and body are the same.',
    params: DeliveryParams,
    response: { 202: json('It is queued.', WebhookDelivery), ...problems(401, 403, 404, 429, 503) },
  };
  app.post('/v1/webhooks/:id/redeliver', { schema, config: { scope: 'submit' } }, async (request, reply) =>
    reply.code(202).send(await webhooks.redeliver(request.params.id, sightOf(request.caller))),
  );
}
