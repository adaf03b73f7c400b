/**
 * Copies of accepted requests for the shadow version of their model. A copy is a request of its own, on the lane
 * `bulk`, kept for two minutes, seen by no user: its answer is compared (shadow-comparer.ts) and thrown away.
 *
 * It is made after the acceptance and behind its back: nothing here throws or is waited for. Where copies pile up, in
 * this process or in the queue, they are skipped.
 */
import type { ModelDeployment, ServingState } from '@remuda/schemas';
import { newNonce } from '../ids.js';
import type { Clock } from '../lifecycle/clock.js';
import type { Metrics } from '../observability/metrics.js';
import { type JobQueues, ticketOf } from '../queue/job-queue.js';
import { type Partition, queueName } from '../queue/partitions.js';
import { recordOf } from '../requests/present-request.js';
import { partitionOfRecord } from '../requests/submit-request.js';
import type { Acceptance, RequestStore } from '../store/request-store.js';
import { shadowIdOf } from './shadow-id.js';
import { servedRef } from './target-refs.js';

/** Copies, and bytes of their inputs, that this process has under way to Redis. */
const MOST_UNDER_WAY = 64;
const MOST_BYTES = 16 * 1024 * 1024;
/** Jobs in the queue of copies above which none is added: what waits longer than DEADLINE_MS is not run anyway. */
const MOST_WAITING = 200;
const FRESH_MS = 1_000;
const DEADLINE_MS = 60_000;
const KEPT_MS = 120_000;
/** Goes last. */
const PRIORITY = 9;

export interface ShadowCopiesDeps {
  store: Pick<RequestStore, 'accept'>;
  queues: JobQueues;
  deployments: { of(model: string): ModelDeployment; serving(model: string): ServingState | undefined };
  /** Workers may have no consumer yet on the queue of the copy. */
  wake(partition: Partition, version: string): void;
  metrics: Pick<Metrics, 'shadowCopies'>;
  clock: Clock;
  onError(error: Error): void;
  /** From 0 to below 1. */
  random?: () => number;
}

export class ShadowCopies {
  readonly #deps: ShadowCopiesDeps;
  readonly #depths = new Map<string, { waiting: number; askedAt: number }>();
  #underWay = 0;
  #bytes = 0;

  constructor(deps: ShadowCopiesDeps) {
    this.#deps = deps;
  }

  /** Copies it if its model has a shadow and the dice say so. Returns at once and never throws. */
  offer(primary: Acceptance): void {
    const { deployments, random = Math.random } = this.#deps;
    const { model, version } = primary.document;
    const deployment = deployments.of(model);
    const { shadow } = deployment;
    if (!shadow || random() >= shadow.sample) return;
    const to = servedRef(shadow.version, deployment, deployments.serving(model));
    if (to === undefined || to === version) return;
    // After the answer to the caller has been written.
    setImmediate(() => void this.#copy(primary, to));
  }

  async #copy(primary: Acceptance, version: string): Promise<void> {
    const { metrics, onError } = this.#deps;
    const { model } = primary.document;
    const bytes = primary.payloads.reduce((sum, { length }) => sum + length, 0);
    if (this.#underWay >= MOST_UNDER_WAY || this.#bytes + bytes > MOST_BYTES) {
      return metrics.shadowCopies.inc({ model, outcome: 'skipped' });
    }
    this.#underWay++;
    this.#bytes += bytes;
    try {
      const outcome = await this.#submit(copyOf(primary, version, this.#deps.clock.now()));
      metrics.shadowCopies.inc({ model, outcome });
    } catch (error) {
      metrics.shadowCopies.inc({ model, outcome: 'lost' });
      onError(error as Error);
    } finally {
      this.#underWay--;
      this.#bytes -= bytes;
    }
  }

  async #submit(copy: Acceptance): Promise<'submitted' | 'skipped'> {
    const { store, queues, wake } = this.#deps;
    const record = recordOf(copy);
    const partition = partitionOfRecord(record);
    if (!(await this.#hasRoom(partition))) return 'skipped';
    await Promise.all([store.accept(copy), queues.of(partition).add(ticketOf(record))]);
    wake(partition, copy.document.version);
    return 'submitted';
  }

  async #hasRoom(partition: Partition): Promise<boolean> {
    const now = this.#deps.clock.now();
    const name = queueName(partition);
    let depth = this.#depths.get(name);
    if (!depth || now - depth.askedAt >= FRESH_MS) {
      depth = { waiting: (await this.#deps.queues.of(partition).depth()).waiting, askedAt: now };
      this.#depths.set(name, depth);
    }
    return depth.waiting++ < MOST_WAITING;
  }
}

function copyOf(primary: Acceptance, version: string, now: number): Acceptance {
  const { document, requestId } = primary;
  const reasons = [`a copy of ${requestId} for the shadow version ${version}`];
  const { cache: _, ...own } = document;
  return {
    ...primary,
    requestId: shadowIdOf(requestId),
    nonce: newNonce(),
    fingerprint: '',
    acceptedAt: now,
    deadline: now + DEADLINE_MS,
    finishDeadline: 0,
    after: false,
    resultTtlMs: KEPT_MS,
    document: {
      ...own,
      version,
      // Nobody reads it of a copy.
      digest: '',
      shadowOf: requestId,
      webhook: undefined,
      metadata: { priority: PRIORITY },
      route: { device_class: document.route.device_class, lane: 'bulk', reasons },
      notices: [],
    },
  };
}
