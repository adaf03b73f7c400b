/**
 * Which tenants and keys have endpoints, kept in memory, so that accepting a request asks Redis nothing more. Follows
 * edits by a channel, and looks by itself every two seconds where a message was lost. Until it has looked once, it says
 * yes to everybody: a request that is asked about for nothing costs one look, one that is not asked about is not told.
 */
import type { WebhookEndpoint } from '@remuda/schemas';
import type { Clock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { concerns, type EndpointStore } from './endpoint-store.js';

const EVERY_MS = 2_000;

export interface EndpointViewOptions {
  redis: Redis;
  /** A connection of role `subscriber`; shared. */
  subscriber: Redis;
  keys: Keys;
  endpoints: EndpointStore;
  clock: Clock;
  onError(error: Error): void;
}

export class EndpointView implements Service {
  readonly name = 'webhook-endpoints';
  readonly #options: EndpointViewOptions;
  #known: readonly WebhookEndpoint[] | undefined;
  #cancel: (() => void) | undefined;
  #stopped = false;

  constructor(options: EndpointViewOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { subscriber, keys, onError } = this.#options;
    subscriber.on('message', this.#hear);
    // Not waited for: ioredis subscribes when Redis is there.
    subscriber.subscribe(keys.webhookEndpointsChanged()).catch(onError);
    await this.#turn();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#options.subscriber.off('message', this.#hear);
    this.#cancel?.();
  }

  /** Whether some endpoint may be told of a request of that tenant and key. */
  wants(of: { tenant: string; keyId: string | null }): boolean {
    return this.#known === undefined || this.#known.some((endpoint) => concerns(endpoint, of));
  }

  async refresh(): Promise<void> {
    this.#known = await this.#options.endpoints.all();
  }

  readonly #hear = (channel: string): void => {
    if (channel === this.#options.keys.webhookEndpointsChanged()) this.#refreshSafely();
  };

  async #turn(): Promise<void> {
    await this.#refreshSafely();
    if (!this.#stopped) this.#cancel = this.#options.clock.after(EVERY_MS, () => void this.#turn());
  }

  async #refreshSafely(): Promise<void> {
    if (this.#options.redis.status !== 'ready') return;
    await this.refresh().catch(this.#options.onError);
  }
}
