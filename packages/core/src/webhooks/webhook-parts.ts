/** What API and workers have of webhooks alike: the stores, the queue, and the outbox that events are put into. */
import type { Clock } from '../lifecycle/clock.js';
import type { LifeLog } from '../observability/events.js';
import { WebhookQueue } from '../queue/webhook-queue.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { DeliveryStore } from './delivery-store.js';
import { EndpointStore } from './endpoint-store.js';
import { WebhookOutbox } from './outbox.js';
import { SigningSecrets } from './signing-secrets.js';

export interface WebhookPartsDeps {
  redis: Redis;
  keys: Keys;
  clock: Clock;
  life: LifeLog;
  onError(error: Error): void;
}

export interface WebhookParts {
  deliveries: DeliveryStore;
  endpoints: EndpointStore;
  secrets: SigningSecrets;
  queue: WebhookQueue;
  outbox: WebhookOutbox;
}

export function webhookParts({ redis, keys, clock, life, onError }: WebhookPartsDeps): WebhookParts {
  const deliveries = new DeliveryStore(redis, keys);
  const endpoints = new EndpointStore(redis, keys);
  const queue = new WebhookQueue({ redis, keyPrefix: keys.space.prefix, onError });
  const outbox = new WebhookOutbox({ deliveries, endpoints, queue, life, clock });
  return { deliveries, endpoints, secrets: new SigningSecrets(redis, keys), queue, outbox };
}
