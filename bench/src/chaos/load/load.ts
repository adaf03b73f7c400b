/**
 * The clients: so many drivers send the planned calls, each until it is accepted. What got no answer is unknown and sent
 * again under the same id (or Idempotency-Key); what was refused is sent again after a pause. Each accepted id stands in
 * the ledger before its driver makes the next call. The gate (`allow`) keeps load and faults in step, by count.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosFleet } from '../fleet/chaos-fleet.js';
import type { ProcessSlot } from '../fleet/process-slot.js';
import type { Answer, ApiClient } from './api-client.js';
import type { LedgerFile } from './ledger-file.js';
import { type PlannedCall, type PlannedRequest, plannedCalls } from './load-plan.js';
import type { Sinks } from './sinks.js';

export interface LoadOptions {
  fleet: ChaosFleet;
  ledger: LedgerFile;
  client: ApiClient;
  seed: number;
  ids: number;
  drivers: number;
  /** Pause of every other driver between two calls: spreads the load over the faults. */
  pauseMs: number;
  sinks: Sinks;
  /** Whether the API knows Idempotency-Key. */
  idempotency: boolean;
}

/** A request as it is sent, and the sink that it names. */
interface Asked {
  request: PlannedRequest;
  body: Record<string, unknown>;
  sink?: string;
}

interface BatchResult {
  status: number;
  record?: { request_id: string };
  problem?: { code: string };
}

const REFUSED_PAUSE_MS = 100;
const UNKNOWN_PAUSE_MS = 50;
const QUICK_PAUSE_MS = 10;

export class Load {
  readonly #options: LoadOptions;
  readonly #calls: Generator<PlannedCall>;
  #offered = 0;
  #allowed = 0;
  #turn = 0;
  readonly #changed = new Set<() => void>();
  /** Calls that had no answer, and answers that said "not accepted, try again". */
  readonly counts = { unknown: 0, refused: 0 };

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#calls = plannedCalls(options.seed, options.ids);
  }

  get offered(): number {
    return this.#offered;
  }

  /** Lets as many be offered. */
  allow(ids: number): void {
    this.#allowed = Math.max(this.#allowed, ids);
    this.#tell();
  }

  /** Resolves when so many have been offered, or all. */
  async reached(ids: number): Promise<void> {
    while (this.#offered < Math.min(ids, this.#options.ids)) await this.#change();
  }

  /** Resolves when all are accepted. @throws Error where the API answers what it should not */
  async run(): Promise<void> {
    const { drivers } = this.#options;
    await Promise.all(Array.from({ length: drivers }, (_, number) => this.#drive(number % 2 === 0)));
  }

  /** The quick ones make a backlog at each fault, the others see to it that something comes all the while. */
  async #drive(quick: boolean): Promise<void> {
    const pauseMs = quick ? QUICK_PAUSE_MS : this.#options.pauseMs;
    for (;;) {
      while (this.#offered >= this.#allowed && this.#offered < this.#options.ids) await this.#change();
      const next = this.#calls.next();
      if (next.done) break;
      this.#offered += next.value.requests.length;
      this.#tell();
      await this.#call(next.value);
      await sleep(pauseMs);
    }
  }

  async #call(call: PlannedCall): Promise<void> {
    if (call.form === 'batch') await this.#sendBatch(call);
    else await this.#sendOne(call.requests[0] as PlannedRequest, call.form === 'wait');
    for (const { cancel, id } of call.requests) if (cancel && id !== undefined) await this.#cancel(id);
  }

  async #sendOne(request: PlannedRequest, wait: boolean): Promise<void> {
    const { client, idempotency } = this.#options;
    const path = `/v1/models/${request.model}/requests`;
    for (let asked = this.#prepare(request); ; ) {
      const key = idempotency ? asked.request.idempotencyKey : undefined;
      const headers = {
        ...(wait ? { prefer: 'wait=2' } : {}),
        ...(key === undefined ? {} : { 'idempotency-key': `"${key}"` }),
      };
      const answer = await client.call(this.#nextApi(), 'POST', path, { body: asked.body, headers });
      const verdict = await this.#judge(answer);
      if (verdict === 'accepted') return this.#accept(asked, idOf(answer));
      if (verdict === 'hopeless') asked = this.#prepare(withoutDeadline(asked.request));
    }
  }

  async #sendBatch({ lane, requests }: PlannedCall): Promise<void> {
    let left = requests.map((request) => this.#prepare(request));
    while (left.length > 0) {
      const entries = left.map(({ request: { model }, body }) => ({ model, ...body }));
      const answer = await this.#options.client.call(this.#nextApi(), 'POST', '/v1/requests:batch', {
        body: { lane, requests: entries },
      });
      if ((await this.#judge(answer)) !== 'accepted') continue;
      const { results } = (answer as Answer).body as { results: BatchResult[] };
      const again: Asked[] = [];
      for (const [i, { status, record, problem }] of results.entries()) {
        const asked = left[i] as Asked;
        const verdict = await this.#judge({ status, body: record ?? problem ?? {} });
        if (verdict === 'accepted') this.#accept(asked, record?.request_id as string);
        else again.push(verdict === 'hopeless' ? this.#prepare(withoutDeadline(asked.request)) : asked);
      }
      left = again;
    }
  }

  /** What an answer says; waits a little where it is to be sent again. @throws Error for what should not be answered */
  async #judge(answer: Answer | null): Promise<'accepted' | 'again' | 'hopeless'> {
    if (answer === null) {
      this.counts.unknown++;
      await sleep(UNKNOWN_PAUSE_MS);
      return 'again';
    }
    if (answer.status < 300) return 'accepted';
    const { code } = answer.body as { code?: string };
    if (code === 'deadline_unreachable') return 'hopeless';
    const passing = answer.status === 429 || answer.status >= 500 || code === 'idempotency_in_progress';
    if (!passing) throw new Error(`the API answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    this.counts.refused++;
    await sleep(REFUSED_PAUSE_MS);
    return 'again';
  }

  #accept({ request, body, sink }: Asked, id: string): void {
    const { model, expected, cancel } = request;
    const { timeout_ms, finish_timeout_ms } = body.metadata as Record<string, unknown>;
    this.#options.ledger.accept({
      ...{ id, model, expected, items: 'items' in body, cancel: cancel && request.id !== undefined },
      deadline: timeout_ms !== undefined || finish_timeout_ms !== undefined,
      ...(sink === undefined ? {} : { webhook: sink }),
    });
  }

  /**
   * What is sent each time that it is sent: the same content under the same id. What an older build does not know is left
   * out while there is any.
   */
  #prepare(request: PlannedRequest): Asked {
    const { fleet, sinks } = this.#options;
    const { webhook, finishTimeoutMs, body } = request;
    if (!fleet.apis.every((slot) => fleet.isCurrent(slot))) return { request, body };
    const finish = finishTimeoutMs === undefined ? {} : { finish_timeout_ms: finishTimeoutMs };
    const timed = { ...body, metadata: { ...(body.metadata as object), ...finish } };
    if (webhook === null) return { request, body: timed };
    const option = { url: sinks.urlOf(webhook), secret: sinks.secret };
    return { request, body: { ...timed, webhook: option }, sink: webhook };
  }

  async #cancel(id: string): Promise<void> {
    for (;;) {
      const answer = await this.#options.client.call(this.#nextApi(), 'DELETE', `/v1/requests/${id}`);
      // 409: it had ended. No answer: it may have been cancelled, and is allowed to be.
      if (answer !== null && answer.status < 500) return;
      await sleep(REFUSED_PAUSE_MS);
    }
  }

  #nextApi(): ProcessSlot {
    const { apis } = this.#options.fleet;
    return apis[this.#turn++ % apis.length] as ProcessSlot;
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#changed.add(resolve));
  }

  #tell(): void {
    const waiting = [...this.#changed];
    this.#changed.clear();
    for (const resolve of waiting) resolve();
  }
}

function idOf(answer: Answer | null): string {
  return ((answer as Answer).body as { request_id: string }).request_id;
}

/** It was not accepted, since it could not have ended in time: sent without, under another id. */
function withoutDeadline(request: PlannedRequest): PlannedRequest {
  const { timeout_ms, ...metadata } = request.body.metadata as Record<string, unknown>;
  const id = request.id === undefined ? undefined : `${request.id}-late`;
  const key = request.idempotencyKey === undefined ? undefined : `${request.idempotencyKey}-late`;
  const body = { ...request.body, ...(id === undefined ? {} : { request_id: id }), metadata };
  return { ...request, id, idempotencyKey: key, finishTimeoutMs: undefined, body };
}
