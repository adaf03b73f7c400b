/**
 * Where events are put in: for each address that wants one, a delivery with its body frozen, and a job. When
 * enqueueEvent has resolved, everything is in Redis; called again with the same event it makes nothing new, so whoever
 * does not know whether it got so far calls it again.
 *
 * Events are not tied to requests: requests/after-end.ts puts in those of requests, batches call it themselves.
 * Next: deliveries.ts.
 */
import { createHash } from 'node:crypto';
import { WEBHOOK_BODY_BYTES, type WebhookEvent, type WebhookPayload } from '@remuda/schemas';
import type { Clock } from '../lifecycle/clock.js';
import type { LifeLog } from '../observability/events.js';
import type { WebhookQueue } from '../queue/webhook-queue.js';
import type { RequestWebhook } from '../store/stored-record.js';
import type { DeliveryStore } from './delivery-store.js';
import { concerns, type EndpointStore, wantsEvent } from './endpoint-store.js';

export interface OutgoingEvent {
  type: WebhookEvent;
  tenant: string;
  /** Of the API key that it came with; null: none was asked for. */
  keyId: string | null;
  /** Id of the request or batch that it is about. */
  subject: string;
  /** Tells it from an earlier thing of the same id. */
  nonce: string;
  traceId: string;
  /** When it happened, Unix milliseconds; the same in every call for the same event. */
  at: number;
  /** Where the request itself asked for it to go. */
  own?: RequestWebhook;
  /**
   * `data` of the body. Asked at most once for each form. `full` may return null where it cannot be had or would be
   * larger than `mostBytes`: then `thin` is sent, which has to say so.
   */
  data(form: WebhookPayload, options: DataOptions): Promise<object | null>;
}

export interface DataOptions {
  mostBytes: number;
  /** Of `thin` in place of `full`. */
  notice?: string;
}

export interface OutboxDeps {
  deliveries: DeliveryStore;
  endpoints: EndpointStore;
  queue: WebhookQueue;
  life: Pick<LifeLog, 'webhook_queued'>;
  clock: Clock;
  /** Default 256 KiB. */
  mostBodyBytes?: number;
}

interface Target {
  url: string;
  endpointId: string | null;
  payload: WebhookPayload;
  secret: string | null;
}

export class WebhookOutbox {
  readonly #deps: OutboxDeps;

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  /** @returns ids of the deliveries; none where nobody wants it */
  async enqueueEvent(event: OutgoingEvent): Promise<string[]> {
    const targets = await this.#targetsOf(event);
    const bodies = new Bodies(event, this.#deps.mostBodyBytes ?? WEBHOOK_BODY_BYTES);
    return Promise.all(targets.map((target) => this.#enqueue(event, target, bodies)));
  }

  async #targetsOf({ type, tenant, keyId, own }: OutgoingEvent): Promise<Target[]> {
    const endpoints = await this.#deps.endpoints.all();
    const targets: Target[] = endpoints
      .filter((endpoint) => concerns(endpoint, { tenant, keyId }) && wantsEvent(endpoint, type))
      .map(({ id, url, payload }) => ({ url, payload, endpointId: id, secret: null }));
    if (own && wantsEvent({ events: own.events ?? null }, type)) {
      targets.push({ url: own.url, payload: own.payload, endpointId: null, secret: own.secret ?? null });
    }
    return targets;
  }

  async #enqueue(event: OutgoingEvent, target: Target, bodies: Bodies): Promise<string> {
    const { deliveries, queue, life, clock } = this.#deps;
    const { type, subject, tenant, traceId } = event;
    const id = deliveryId(event, target);
    const { body, payload } = await bodies.of(target.payload);
    const { url, endpointId, secret } = target;
    const facts = { type, subject, tenant, url, endpointId, payload, traceId, createdAt: clock.now() };
    const state = await deliveries.create({ id, body, secret, ...facts });
    // It was here before, and has been delivered or given up since.
    if (state !== 'pending') return id;
    await queue.add(id);
    life.webhook_queued({ trace_id: traceId, request_id: subject, webhook_id: id, type, bytes: body.length });
    return id;
  }
}

/** The same for the same event and address, whoever works it out. */
function deliveryId({ type, subject, nonce }: OutgoingEvent, { endpointId, url }: Target): string {
  const to = endpointId ?? `own ${url}`;
  const hash = createHash('sha256').update(JSON.stringify([type, subject, nonce, to]));
  return `msg_${hash.digest('base64url').slice(0, 27)}`;
}

interface Body {
  body: string;
  payload: WebhookPayload;
}

/** The two forms of the body of one event, each made when it is first asked for. */
class Bodies {
  readonly #event: OutgoingEvent;
  readonly #mostBytes: number;
  readonly #made = new Map<WebhookPayload, Promise<Body>>();

  constructor(event: OutgoingEvent, mostBytes: number) {
    this.#event = event;
    this.#mostBytes = mostBytes;
  }

  of(form: WebhookPayload): Promise<Body> {
    let body = this.#made.get(form);
    if (!body) {
      body = form === 'full' ? this.#full() : this.#thin();
      this.#made.set(form, body);
    }
    return body;
  }

  async #full(): Promise<Body> {
    const data = await this.#event.data('full', { mostBytes: this.#mostBytes });
    const body = data && this.#textOf(data);
    if (body && Buffer.byteLength(body) <= this.#mostBytes) return { body, payload: 'full' };
    return this.#thin(`the result is larger than a webhook may be (${this.#mostBytes} bytes): fetch it`);
  }

  async #thin(notice?: string): Promise<Body> {
    const data = await this.#event.data('thin', { mostBytes: this.#mostBytes, notice });
    return { body: this.#textOf(data ?? {}), payload: 'thin' };
  }

  #textOf(data: object): string {
    const { type, at } = this.#event;
    return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data });
  }
}
