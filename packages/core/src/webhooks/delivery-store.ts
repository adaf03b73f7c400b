/**
 * Deliveries as they lie in Redis: one hash each, with the frozen body and the log of its attempts, which outlives the
 * request that it is about. The hash is the truth about a delivery; a job of the queue only says that it is time to look
 * at it. Each change is one script on one key, so that deliveries spread over a Cluster.
 *
 * Next: outbox.ts puts deliveries in, deliveries.ts takes them out.
 */
import type { WebhookAttempt, WebhookEvent, WebhookPayload, WebhookState } from '@remuda/schemas';
import type { Keys } from '../store/keys.js';
import { callScript, type Redis } from '../store/redis.js';

/** While it is pending: counted anew with each attempt, and longer than the longest pause between two. */
export const PENDING_KEPT_MS = 8 * 24 * 3600 * 1000;
/** A list of deliveries lives as long as any of them can. */
const LIST_KEPT_MS = 30 * 24 * 3600 * 1000;

/** What of a delivery never changes. */
export interface DeliveryFacts {
  type: WebhookEvent;
  /** Id of the request or batch. */
  subject: string;
  tenant: string;
  url: string;
  /** null: it goes where the request itself asked for it to go. */
  endpointId: string | null;
  payload: WebhookPayload;
  traceId: string;
  /** Unix milliseconds. */
  createdAt: number;
}

export interface Delivery extends DeliveryFacts {
  id: string;
  body: string;
  /** Of the request; null: that of the tenant signs. */
  secret: string | null;
  state: WebhookState;
  /** Attempts since it was made, or since it was last asked to be delivered once more. */
  attemptsMade: number;
  /** When that was, Unix milliseconds. */
  begunAt: number;
  /** Unix milliseconds. */
  nextAt: number;
  reason: string | null;
  expiresAt: number;
  attempts: WebhookAttempt[];
}

export interface NewDelivery extends DeliveryFacts {
  id: string;
  body: string;
  secret: string | null;
}

/** What comes of an attempt. */
export interface DeliveryStep {
  attempt: WebhookAttempt | null;
  state: WebhookState;
  attemptsMade: number;
  /** Unix milliseconds; only of one that is still pending. */
  nextAt: number;
  reason: string | null;
}

const FIELDS = ['facts', 'body', 'secret', 's', 'n', 'begun', 'next', 'why', 'exp', 'log'] as const;

export class DeliveryStore {
  readonly #redis: Redis;
  readonly #keys: Keys;

  constructor(redis: Redis, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /**
   * Freezes a delivery; one of that id that is there already stays as it is. Returns its state. The lists come behind
   * the record: who dies in between has not finished, and does it all again.
   */
  async create({ id, body, secret, ...facts }: NewDelivery): Promise<WebhookState> {
    const now = facts.createdAt;
    const state = (await callScript(
      this.#redis,
      'createWebhook',
      [this.#keys.webhook(id)],
      [JSON.stringify(facts), body, secret ?? '', now, PENDING_KEPT_MS],
    )) as WebhookState;
    const list = this.#keys.webhooksOf(facts.subject);
    await Promise.all([
      this.#redis.sadd(list, id),
      this.#redis.pexpire(list, LIST_KEPT_MS),
      ...(state === 'pending' ? [this.#redis.zadd(this.#keys.webhooksDue(), 'NX', now, id)] : []),
    ]);
    return state;
  }

  async read(id: string): Promise<Delivery | null> {
    return deliveryOf(id, await this.#redis.hmget(this.#keys.webhook(id), ...FIELDS));
  }

  /** All about one request or batch, oldest first; what has expired is left out. */
  async listOf(subject: string): Promise<Delivery[]> {
    const ids = await this.#redis.smembers(this.#keys.webhooksOf(subject));
    const found = await Promise.all(ids.map((id) => this.read(id)));
    return found
      .filter((delivery) => delivery !== null)
      .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  }

  /** Writes down what came of an attempt. Returns the state that it has now; null: it has expired. */
  async step(id: string, step: DeliveryStep, now: number, keptMs: number): Promise<WebhookState | null> {
    const pending = step.state === 'pending';
    const state = (await callScript(
      this.#redis,
      'logWebhook',
      [this.#keys.webhook(id)],
      [
        step.attempt ? JSON.stringify(step.attempt) : '',
        step.state,
        step.attemptsMade,
        step.nextAt,
        step.reason ?? '',
        now,
        pending ? PENDING_KEPT_MS : keptMs,
      ],
    )) as WebhookState | '';
    if (state === 'pending') await this.#redis.zadd(this.#keys.webhooksDue(), 'XX', step.nextAt, id);
    else await this.forgetDue(id);
    return state || null;
  }

  /** Begins a new round of attempts. False: there is no such delivery. */
  async redeliver(id: string, now: number): Promise<boolean> {
    const reply = await callScript(
      this.#redis,
      'redeliverWebhook',
      [this.#keys.webhook(id)],
      [now, PENDING_KEPT_MS],
    );
    if (reply === 0) return false;
    await this.#redis.zadd(this.#keys.webhooksDue(), now, id);
    return true;
  }

  /** Up to `count` deliveries that should have been attempted by `until`; they are given out again only after `now`. */
  async takeOverdue(until: number, now: number, count: number): Promise<string[]> {
    const keys = [this.#keys.webhooksDue()];
    return (await callScript(this.#redis, 'takeAftermath', keys, [until, now, count])) as string[];
  }

  async forgetDue(id: string): Promise<void> {
    await this.#redis.zrem(this.#keys.webhooksDue(), id);
  }

  /** How many deliveries are pending. */
  countPending(): Promise<number> {
    return this.#redis.zcard(this.#keys.webhooksDue());
  }
}

function deliveryOf(id: string, fields: readonly (string | null)[]): Delivery | null {
  const [facts, body, secret, state, n, begun, next, why, exp, log] = fields;
  if (!facts || !state) return null;
  return {
    id,
    ...(JSON.parse(facts) as DeliveryFacts),
    body: body ?? '',
    secret: secret ?? null,
    state: state as WebhookState,
    attemptsMade: Number(n),
    begunAt: Number(begun),
    nextAt: Number(next),
    reason: why || null,
    expiresAt: Number(exp),
    attempts: (log ?? '')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as WebhookAttempt),
  };
}
