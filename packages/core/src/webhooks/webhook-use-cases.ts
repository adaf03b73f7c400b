/**
 * What people ask of webhooks: the log of deliveries, a delivery once more, endpoints, and the signing secret. A tenant
 * sees its own; who may see others says so with each call.
 */
import type {
  WebhookDelivery,
  WebhookDeliveryDetail,
  WebhookEndpoint,
  WebhookEndpointSpec,
  WebhookSigningSecret,
} from '@remuda/schemas';
import { WEBHOOK_ENDPOINTS_MOST } from '@remuda/schemas';
import type { Sight } from '../access/caller.js';
import { RemudaError } from '../errors.js';
import { newEndpointId } from '../ids.js';
import type { Clock } from '../lifecycle/clock.js';
import type { StoreGuard } from '../requests/store-guard.js';
import type { Delivery } from './delivery-store.js';
import { endpointNotFound } from './endpoint-store.js';
import type { EndpointView } from './endpoint-view.js';
import type { WebhookParts } from './webhook-parts.js';

export interface WebhookUseCases {
  /** About one request or batch, oldest first; [] where there are none. */
  deliveriesOf(subject: string, sight: Sight): Promise<WebhookDelivery[]>;
  /** @throws webhook_not_found, as the rest */
  delivery(id: string, sight: Sight): Promise<WebhookDeliveryDetail>;
  /** Begins a new round of attempts, at once. */
  redeliver(id: string, sight: Sight): Promise<WebhookDelivery>;
  endpoints(tenant: string): Promise<WebhookEndpoint[]>;
  endpoint(id: string, tenant: string): Promise<WebhookEndpoint>;
  /** @throws tenant_over_quota at the 21st. The URL was checked at the edge. */
  addEndpoint(spec: WebhookEndpointSpec, tenant: string): Promise<WebhookEndpoint>;
  enableEndpoint(id: string, tenant: string): Promise<WebhookEndpoint>;
  removeEndpoint(id: string, tenant: string): Promise<void>;
  /** Made where there is none yet. */
  secret(tenant: string): Promise<WebhookSigningSecret>;
  /** The secret before goes on signing for `overlapS` seconds. */
  rotateSecret(tenant: string, overlapS: number): Promise<WebhookSigningSecret>;
}

export interface WebhookUseCaseDeps extends WebhookParts {
  view: Pick<EndpointView, 'refresh'>;
  guard: StoreGuard;
  clock: Clock;
}

export function webhookUseCases(deps: WebhookUseCaseDeps): WebhookUseCases {
  const { deliveries, endpoints, secrets, queue, view, guard, clock } = deps;
  const readDelivery = async (id: string, sight: Sight): Promise<Delivery> => {
    const found = await deliveries.read(id);
    if (found && (sight === null || found.tenant === sight)) return found;
    throw new RemudaError(
      'webhook_not_found',
      `no delivery "${id}" is known: GET /v1/requests/{id}/webhooks lists those of a request`,
    );
  };
  const readEndpoint = async (id: string, tenant: string): Promise<WebhookEndpoint> => {
    const found = await endpoints.get(id);
    if (found?.tenant === tenant) return found;
    throw endpointNotFound(id);
  };
  /** What this process accepts from now on knows of it. */
  const save = async (endpoint: WebhookEndpoint): Promise<WebhookEndpoint> => {
    await endpoints.save(endpoint);
    await view.refresh();
    return endpoint;
  };
  const endpointsOf = async (tenant: string): Promise<WebhookEndpoint[]> =>
    (await endpoints.all()).filter((endpoint) => endpoint.tenant === tenant);
  return {
    deliveriesOf: (subject, sight) =>
      guard.run(async () => {
        const found = await deliveries.listOf(subject);
        return found.filter(({ tenant }) => sight === null || tenant === sight).map(presentDelivery);
      }),
    delivery: (id, sight) =>
      guard.run(async () => {
        const found = await readDelivery(id, sight);
        return { ...presentDelivery(found), body: found.body };
      }),
    redeliver: (id, sight) =>
      guard.run(async () => {
        await readDelivery(id, sight);
        await deliveries.redeliver(id, clock.now());
        await queue.addNow(id);
        return presentDelivery(await readDelivery(id, sight));
      }),
    endpoints: (tenant) => guard.run(() => endpointsOf(tenant)),
    endpoint: (id, tenant) => guard.run(() => readEndpoint(id, tenant)),
    addEndpoint: (spec, tenant) =>
      guard.run(async () => {
        const endpoint = endpointOf(spec, tenant, clock.now());
        if (!(await endpoints.add(endpoint, WEBHOOK_ENDPOINTS_MOST))) throw tooMany(tenant);
        await view.refresh();
        return endpoint;
      }),
    enableEndpoint: (id, tenant) =>
      guard.run(async () => save({ ...(await readEndpoint(id, tenant)), disabled: null })),
    removeEndpoint: (id, tenant) =>
      guard.run(async () => {
        await readEndpoint(id, tenant);
        await endpoints.remove(id);
        await view.refresh();
      }),
    secret: (tenant) => guard.run(() => secrets.describe(tenant, clock.now())),
    rotateSecret: (tenant, overlapS) => guard.run(() => secrets.rotate(tenant, overlapS * 1000, clock.now())),
  };
}

function endpointOf(spec: WebhookEndpointSpec, tenant: string, now: number): WebhookEndpoint {
  return {
    id: newEndpointId(),
    tenant,
    url: spec.url,
    events: spec.events ?? null,
    payload: spec.payload ?? 'full',
    key_id: spec.key_id ?? null,
    created_at: iso(now),
    disabled: null,
  };
}

function tooMany(tenant: string): RemudaError {
  return new RemudaError(
    'tenant_over_quota',
    `tenant "${tenant}" has ${WEBHOOK_ENDPOINTS_MOST} webhook endpoints, which is as many as it may have: delete one first`,
  );
}

/** As it is shown: without the secret, and without the body. */
function presentDelivery(delivery: Delivery): WebhookDelivery {
  const { id, type, subject, tenant, url, payload, state, reason, attempts } = delivery;
  return {
    ...{ id, type, subject, tenant, url, payload, state, reason, attempts },
    endpoint_id: delivery.endpointId,
    attempts_made: delivery.attemptsMade,
    next_attempt_at: state === 'pending' ? iso(delivery.nextAt) : null,
    created_at: iso(delivery.createdAt),
    expires_at: iso(delivery.expiresAt),
    trace_id: delivery.traceId,
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
