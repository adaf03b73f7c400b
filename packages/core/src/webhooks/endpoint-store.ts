/** Webhook endpoints of all tenants in one hash: some hundreds at most, and read as a whole. */
import type { WebhookEndpoint, WebhookEvent } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import type { Keys } from '../store/keys.js';
import { callScript, type Redis } from '../store/redis.js';

export class EndpointStore {
  readonly #redis: Redis;
  readonly #keys: Keys;
  #reading: Promise<WebhookEndpoint[]> | undefined;

  constructor(redis: Redis, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** As they are now: who asks in the same turn of the event loop shares one read, which has not been sent yet. */
  all(): Promise<WebhookEndpoint[]> {
    this.#reading ??= new Promise((resolve, reject) => {
      setImmediate(() => {
        this.#reading = undefined;
        this.#redis.hvals(this.#keys.webhookEndpoints()).then((texts) => {
          const endpoints = texts.map((text) => JSON.parse(text) as WebhookEndpoint);
          resolve(endpoints.sort((a, b) => (a.created_at < b.created_at ? -1 : 1)));
        }, reject);
      });
    });
    return this.#reading;
  }

  async get(id: string): Promise<WebhookEndpoint | null> {
    const text = await this.#redis.hget(this.#keys.webhookEndpoints(), id);
    return text === null ? null : (JSON.parse(text) as WebhookEndpoint);
  }

  /** False: its tenant has `most` already. */
  async add(endpoint: WebhookEndpoint, most: number): Promise<boolean> {
    const { id, tenant } = endpoint;
    const args = [id, JSON.stringify(endpoint), tenant, most];
    const added = await callScript(this.#redis, 'addWebhookEndpoint', [this.#keys.webhookEndpoints()], args);
    if (added === 0) return false;
    await this.#tell();
    return true;
  }

  async save(endpoint: WebhookEndpoint): Promise<void> {
    await this.#redis.hset(this.#keys.webhookEndpoints(), endpoint.id, JSON.stringify(endpoint));
    await this.#tell();
  }

  /** False: there was none. */
  async remove(id: string): Promise<boolean> {
    const removed = await this.#redis.hdel(this.#keys.webhookEndpoints(), id);
    await this.#tell();
    return removed === 1;
  }

  /** Sends nothing more there until somebody enables it. */
  async disable(id: string, reason: string, now: number): Promise<void> {
    const endpoint = await this.get(id);
    if (!endpoint || endpoint.disabled) return;
    await this.save({ ...endpoint, disabled: { at: new Date(now).toISOString(), reason } });
  }

  async #tell(): Promise<void> {
    await this.#redis.publish(this.#keys.webhookEndpointsChanged(), '');
  }
}

/** Whether an endpoint is told of what happens to a request of that tenant and key. */
export function concerns(
  { tenant, key_id, disabled }: WebhookEndpoint,
  of: { tenant: string; keyId: string | null },
): boolean {
  return !disabled && tenant === of.tenant && (key_id === null || key_id === of.keyId);
}

export function wantsEvent({ events }: Pick<WebhookEndpoint, 'events'>, type: WebhookEvent): boolean {
  return events === null || events.includes(type);
}

export function endpointNotFound(id: string): RemudaError {
  return new RemudaError(
    'webhook_not_found',
    `there is no webhook endpoint "${id}": list them to see the ids`,
  );
}
