/**
 * Takes deliveries out of the queue and to their hosts, as one of any number of workers: is it still wanted, may its
 * host have one more attempt now, sign, send, write down what came of it. An attempt that is not written down (this
 * process died) is made again, with the same webhook-id: delivered at least once, and counted by the receiver's books.
 *
 * No host holds up another: attempts at once are bounded for each (host-gates.ts), and who is not let in goes back to
 * the queue instead of waiting here. Next: send-webhook.ts.
 */
import type { WebhookAttempt } from '@remuda/schemas';
import type { Clock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { LifeLog } from '../observability/events.js';
import type { Metrics } from '../observability/metrics.js';
import { WebhookConsumer } from '../queue/webhook-queue.js';
import type { Redis } from '../store/redis.js';
import type { Delivery, DeliveryStep, DeliveryStore } from './delivery-store.js';
import type { EndpointStore } from './endpoint-store.js';
import { type Entry, HostGates, type HostGatesOptions } from './host-gates.js';
import { nextAttemptInMs, RETRY_SCHEDULE, retryAfterMs } from './retry-schedule.js';
import type { Sent, WebhookSender } from './send-webhook.js';
import { signatureHeader } from './sign.js';
import type { SigningSecrets } from './signing-secrets.js';

export interface DeliveriesDeps {
  /** A connection of role `worker`. */
  redis: Redis;
  keyPrefix: string;
  deliveries: DeliveryStore;
  endpoints: EndpointStore;
  secrets: SigningSecrets;
  sender: WebhookSender;
  clock: Clock;
  metrics: Pick<
    Metrics,
    | 'webhookDeliveries'
    | 'webhookAttempts'
    | 'webhookSeconds'
    | 'webhookPutOff'
    | 'webhookBreakers'
    | 'webhookOutbox'
  > & { refreshBefore?: Metrics['refreshBefore'] };
  life: Pick<LifeLog, 'delivered' | 'webhook_failed' | 'webhook_given_up'>;
  onError(error: Error): void;
  /** Deliveries in hand at once. Default 64. */
  concurrency?: number;
  lockMs: number;
  /** How long a delivery is kept after it was delivered. Default a day. */
  keptMs?: number;
  /** Milliseconds before each attempt. Default RETRY_SCHEDULE. */
  schedule?: readonly number[];
  gates?: HostGatesOptions;
  /** From 0 to below 1. */
  random?: () => number;
}

const CONCURRENCY = 64;
const KEPT_MS = 24 * 3600 * 1000;
/** One that was given up is kept longer: somebody has to find out. */
const GIVEN_UP_KEPT_MS = 7 * 24 * 3600 * 1000;
/** A host that lets nobody in for this long is dead to a delivery, whether it was tried ten times or not. */
const MOST_WAIT_MS = 4 * 24 * 3600 * 1000;
/** Attempts under way when it is stopped have this long; then they are cut off, and made again by others. */
const GRACE_MS = 300;

export class WebhookDeliveries implements Service {
  readonly name = 'webhooks';
  readonly #deps: DeliveriesDeps;
  readonly #gates: HostGates;
  readonly #consumer: WebhookConsumer;
  readonly #inHand = new Set<Promise<unknown>>();

  constructor(deps: DeliveriesDeps) {
    this.#deps = deps;
    this.#gates = new HostGates(deps.gates);
    const { redis, keyPrefix, concurrency = CONCURRENCY, lockMs, onError } = deps;
    this.#consumer = new WebhookConsumer({
      ...{ redis, keyPrefix, concurrency, lockMs, onError },
      handle: (id) => this.#hold(this.#handle(id)),
    });
    deps.metrics.refreshBefore?.(() => this.#refreshGauges());
  }

  async start(): Promise<void> {
    this.#consumer.start();
  }

  async stop(): Promise<void> {
    await this.#consumer.pause();
    const { clock, sender } = this.#deps;
    const cancel = clock.after(GRACE_MS, () => sender.cutAll());
    await Promise.allSettled(this.#inHand);
    cancel();
    await this.#consumer.close();
  }

  async #hold<T>(work: Promise<T>): Promise<T> {
    this.#inHand.add(work);
    try {
      return await work;
    } finally {
      this.#inHand.delete(work);
    }
  }

  /** Milliseconds after which it is to be looked at again; null: it has ended. */
  async #handle(id: string): Promise<number | null> {
    const { deliveries, clock } = this.#deps;
    const delivery = await deliveries.read(id);
    if (delivery?.state !== 'pending') {
      await deliveries.forgetDue(id);
      return null;
    }
    const early = delivery.nextAt - clock.now();
    if (early > 0) return early;
    const unwanted = await this.#unwanted(delivery);
    if (unwanted !== undefined) return this.#giveUp(delivery, null, unwanted);
    const entry = this.#gates.enter(hostAndPort(delivery.url), clock.now(), this.#random());
    if (!entry.entered) return this.#putOff(delivery, entry);
    return this.#attempt(delivery, entry);
  }

  async #unwanted({ endpointId }: Delivery): Promise<string | undefined> {
    if (endpointId === null) return undefined;
    const endpoint = await this.#deps.endpoints.get(endpointId);
    if (!endpoint) return 'the endpoint was deleted';
    return endpoint.disabled ? `the endpoint is disabled: ${endpoint.disabled.reason}` : undefined;
  }

  #putOff(
    delivery: Delivery,
    { reason, againMs }: Extract<Entry, { entered: false }>,
  ): Promise<null> | number {
    const { clock, metrics } = this.#deps;
    if (clock.now() - delivery.begunAt > MOST_WAIT_MS) {
      return this.#giveUp(delivery, null, 'the host has answered nothing for days');
    }
    metrics.webhookPutOff.inc({ reason });
    return againMs;
  }

  async #attempt(delivery: Delivery, { leave }: Extract<Entry, { entered: true }>): Promise<number | null> {
    const { clock, sender, metrics } = this.#deps;
    const begun = clock.now();
    let sent: Sent | undefined;
    try {
      sent = await sender.send({
        url: delivery.url,
        headers: await this.#headersOf(delivery, begun),
        body: delivery.body,
      });
    } finally {
      leave(sent ? isWell(sent) : null, clock.now() - begun);
    }
    if (sent.outcome === 'cut_off') return 0;
    const duration = clock.now() - begun;
    const { outcome, status, error } = sent;
    metrics.webhookAttempts.inc({ outcome });
    metrics.webhookSeconds.observe({ outcome }, duration / 1000);
    const attempt = { at: new Date(begun).toISOString(), outcome, status, error, duration_ms: duration };
    return this.#settle(delivery, attempt, sent);
  }

  async #headersOf(
    { id, tenant, body, secret, traceId }: Delivery,
    at: number,
  ): Promise<Record<string, string>> {
    const timestamp = Math.floor(at / 1000);
    const valid = secret === null ? await this.#deps.secrets.valid(tenant, at) : [secret];
    return {
      'content-type': 'application/json',
      'user-agent': 'remuda-webhooks/1',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signatureHeader(id, timestamp, body, valid),
      traceparent: `00-${traceId}-${spanOf(this.#random())}-01`,
    };
  }

  async #settle(
    delivery: Delivery,
    attempt: WebhookAttempt,
    { retryAfter, status }: Sent,
  ): Promise<number | null> {
    if (attempt.outcome === 'delivered') return this.#delivered(delivery, attempt);
    if (attempt.outcome === 'gone') {
      const { endpoints, clock } = this.#deps;
      if (delivery.endpointId !== null)
        await endpoints.disable(delivery.endpointId, 'it answered 410', clock.now());
      return this.#giveUp(delivery, attempt, 'the address answered 410');
    }
    const failed = delivery.attemptsMade + 1;
    const asked = status === 429 || status === 503 ? retryAfterMs(retryAfter, this.#deps.clock.now()) : 0;
    const { schedule = RETRY_SCHEDULE } = this.#deps;
    const pause = nextAttemptInMs({ failed, retryAfterMs: asked, random: this.#random(), schedule });
    if (pause === null) return this.#giveUp(delivery, attempt, `${failed} attempts have failed`);
    return this.#tryAgain(delivery, attempt, failed, pause);
  }

  async #delivered(delivery: Delivery, attempt: WebhookAttempt): Promise<null> {
    const { metrics, life } = this.#deps;
    await this.#step(delivery, { attempt, state: 'delivered', reason: null });
    metrics.webhookDeliveries.inc({ outcome: 'delivered' });
    const status = delivery.type.replace(/^.*\./, '');
    life.delivered({ trace_id: delivery.traceId, request_id: delivery.subject, status, by: 'webhook' });
    return null;
  }

  async #giveUp(delivery: Delivery, attempt: WebhookAttempt | null, reason: string): Promise<null> {
    const { metrics, life } = this.#deps;
    await this.#step(delivery, { attempt, state: 'given_up', reason });
    metrics.webhookDeliveries.inc({ outcome: 'given_up' });
    const { traceId: trace_id, subject: request_id, id: webhook_id } = delivery;
    life.webhook_given_up({ trace_id, request_id, webhook_id, reason });
    return null;
  }

  async #tryAgain(
    delivery: Delivery,
    attempt: WebhookAttempt,
    failed: number,
    pause: number,
  ): Promise<number | null> {
    const { clock, life } = this.#deps;
    const next = { attempt, state: 'pending' as const, reason: null, attemptsMade: failed };
    const state = await this.#step(delivery, { ...next, nextAt: clock.now() + pause });
    life.webhook_failed({
      ...{ trace_id: delivery.traceId, request_id: delivery.subject, webhook_id: delivery.id },
      ...{ attempt: failed, outcome: attempt.outcome, http_status: attempt.status, delay_ms: pause },
    });
    return state === 'pending' ? pause : null;
  }

  #step(
    { id, attemptsMade }: Delivery,
    step: Omit<DeliveryStep, 'attemptsMade' | 'nextAt'> & Partial<DeliveryStep>,
  ): Promise<DeliveryStep['state'] | null> {
    const { deliveries, clock, keptMs = KEPT_MS } = this.#deps;
    const kept = step.state === 'given_up' ? Math.max(keptMs, GIVEN_UP_KEPT_MS) : keptMs;
    const made = attemptsMade + (step.attempt ? 1 : 0);
    return deliveries.step(id, { attemptsMade: made, nextAt: 0, ...step }, clock.now(), kept);
  }

  async #refreshGauges(): Promise<void> {
    const { metrics, deliveries, clock } = this.#deps;
    metrics.webhookBreakers.set({}, this.#gates.notClosed(clock.now()));
    metrics.webhookOutbox.set({}, await deliveries.countPending());
  }

  #random(): number {
    return (this.#deps.random ?? Math.random)();
  }
}

function hostAndPort(text: string): string {
  const { hostname, port, protocol } = new URL(text);
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

/** Whether the host is there and in order; what it thinks of this one delivery does not matter. */
function isWell({ outcome, status }: Sent): boolean | null {
  // Not its fault, and it costs no time.
  if (outcome === 'cut_off' || outcome === 'address_refused') return null;
  return status !== null && status < 500;
}

/** A span id is 16 hex digits, not all zero. */
function spanOf(random: number): string {
  return (1 + Math.floor(random * 2 ** 48)).toString(16).padStart(16, '0');
}
