/**
 * Puts right what crashes and lost messages leave behind, in bounded steps. It walks the open requests, oldest first:
 * a deadline that passed where no worker looks ends the request, and so does a model that was taken out; a job that is
 * gone is put back (its fencing token goes on from where the lost one was) or, after a few times, given up; ids that
 * point nowhere are dropped.
 *
 * Runs in every worker and every API, so that it goes on where no worker lives; a lease lets one of the fleet do it at
 * a time. Two at once would do no harm.
 */
import { isTerminal } from '@remuda/schemas';
import { itemError } from '../errors.js';
import { LeasedService } from '../fleet/leased-role.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import { Reconciler } from '../mend/reconciler.js';
import { takenOutError } from '../models/taken-out.js';
import type { LifeLog } from '../observability/events.js';
import type { Metrics } from '../observability/metrics.js';
import { type JobQueues, ticketOf } from '../queue/job-queue.js';
import { type Partition, queueName } from '../queue/partitions.js';
import { MAX_RESCUES, RESCUES_COUNT_AS_ONE_MS } from '../queue/retry-policy.js';
import type { LetterStore } from '../store/letter-store.js';
import type { Redis } from '../store/redis.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import type { Coalescing } from './coalescing.js';
import { expireDue, expireRequest, seemsLate } from './expire-due.js';
import { partitionOfRecord } from './submit-request.js';

export interface SweeperOptions {
  redis: Redis;
  store: RequestStore;
  queues: JobQueues;
  metrics: Pick<Metrics, 'repairs' | 'requests'>;
  life: LifeLog;
  /** The model was taken out with the admin API; default: none is. */
  isTakenOut?(model: string): boolean;
  /** Looks after requests that wait for the answer of another. */
  coalescing?: Pick<Coalescing, 'settle'>;
  letters?: Pick<LetterStore, 'trim'>;
  onError(error: Error): void;
  clock?: Clock;
  /** Pause between two turns. */
  everyMs?: number;
  /** A younger request may still be between its record and its job. */
  lostAfterMs?: number;
}

const EVERY_MS = 3_000;
const LOST_AFTER_MS = 30_000;
/** A leader that has no record by then will not get one: whoever was to make it has died. */
const LEADERLESS_AFTER_MS = 5_000;
/** Long enough for a slow turn, short enough that a dead sweeper is soon replaced. */
const LEASE_MS = 20_000;
/** Small enough that an API which has the role answers its callers between two pages. */
const PAGE = 200;
const PAGES_PER_TURN = 20;
/** Clocks that are kept in step differ by less. */
const CLOCK_SLACK_MS = 2_000;
const TRIM_STEP = 500;
const RECOUNT_EVERY_MS = 30_000;
/** Queues that are searched for jobs of dead workers in one turn. */
const MOST_QUEUES = 100;

/** Where the walk over one shard has got to. */
interface Walk {
  from: number;
  page: number;
  trimCursor: string;
}

export class Sweeper extends LeasedService {
  readonly #options: SweeperOptions;
  readonly #clock: Clock;
  readonly #reconciler: Reconciler;
  readonly #walks = new Map<number, Walk>();
  /** Of requests that are not young any more, as seen in this turn. */
  readonly #partitions = new Map<string, Partition>();
  #recountedAt = Number.NEGATIVE_INFINITY;

  constructor(options: SweeperOptions) {
    const { everyMs = EVERY_MS, onError, redis, store, clock = systemClock } = options;
    const { keys } = store;
    super({ name: 'sweeper', redis, key: keys.sweeperLease(), leaseMs: LEASE_MS, everyMs, onError, clock });
    this.#options = options;
    this.#clock = clock;
    this.#reconciler = new Reconciler({
      ...{ redis, keys, queues: options.queues, clock: this.#clock },
      onMended: (kind) => options.metrics.repairs.inc({ kind }),
    });
  }

  protected async takeTurn(): Promise<void> {
    this.#partitions.clear();
    await this.#options.letters?.trim(this.#clock.now());
    for (const shard of this.#options.store.keys.allShards()) {
      const walk = this.#walks.get(shard) ?? { from: 0, page: PAGE, trimCursor: '0' };
      this.#walks.set(shard, walk);
      await expireDue(shard, this.#options, () => this.#repaired('expired'));
      await this.#sweepOpen(shard, walk);
      walk.trimCursor = (await this.#options.store.trimList(shard, walk.trimCursor, TRIM_STEP)).cursor;
    }
    await this.#freeStalled();
    await this.#recount();
    await this.#reconciler.turn();
  }

  /** What has not ended, as limits look at it, where builds that do not count or a loss in Redis have made it wrong. */
  async #recount(): Promise<void> {
    const { store, metrics } = this.#options;
    const now = this.#clock.now();
    if (now - this.#recountedAt < RECOUNT_EVERY_MS) return;
    this.#recountedAt = now;
    for (const shard of store.keys.allShards()) {
      if ((await store.recountUsage(shard)) === 'mended') metrics.repairs.inc({ kind: 'usage_recounted' });
    }
  }

  /** Where workers are on the queue they have done it by now. */
  async #freeStalled(): Promise<void> {
    const { queues, metrics } = this.#options;
    for (const partition of [...this.#partitions.values()].slice(0, MOST_QUEUES)) {
      const freed = await queues.of(partition).freeStalled();
      if (freed > 0) metrics.repairs.inc({ kind: 'job_freed' }, freed);
    }
  }

  async #sweepOpen(shard: number, walk: Walk): Promise<void> {
    for (let pages = 0; pages < PAGES_PER_TURN; pages++) {
      const page = await this.#options.store.listOpen(shard, walk.from, walk.page);
      await this.#sweepPage(page.map((entry) => entry.id));
      const last = page.at(-1);
      if (!last || page.length < walk.page) {
        walk.from = 0;
        walk.page = PAGE;
        return;
      }
      // More ids of one millisecond than a page holds: the next page must be larger to get past them.
      if (last.at === walk.from) walk.page *= 2;
      else walk.page = PAGE;
      walk.from = last.at;
    }
  }

  async #sweepPage(ids: readonly string[]): Promise<void> {
    const records = await this.#options.store.read(ids);
    await Promise.all(ids.map((id, i) => this.#sweepOne(id, records[i] ?? null)));
  }

  async #sweepOne(id: string, record: StoredRecord | null): Promise<void> {
    if (!record || isTerminal(record.status)) return this.#options.store.forgetOpen(id);
    const now = this.#clock.now();
    // One that an older build accepted stands in no index by deadline.
    if (seemsLate(record, now)) {
      if (await expireRequest({ requestId: id, record }, this.#options)) this.#repaired('expired');
      return;
    }
    if (record.status === 'queued' && this.#options.isTakenOut?.(record.document.model))
      return this.#endTakenOut(record);
    const { lostAfterMs = LOST_AFTER_MS, coalescing } = this.#options;
    const age = now - record.acceptedAt;
    if (record.follows !== null && record.status === 'queued' && coalescing) {
      await coalescing.settle(record, age >= LEADERLESS_AFTER_MS);
      return;
    }
    // One from the future says that the clocks of two hosts differ, and nothing about its age.
    if (age > -CLOCK_SLACK_MS && age < lostAfterMs) return;
    const partition = partitionOfRecord(record);
    this.#partitions.set(queueName(partition), partition);
    await this.#rescueIfLost(record);
  }

  /** Workers leave the queue of such a model alone. */
  async #endTakenOut(record: StoredRecord): Promise<void> {
    const { store, queues } = this.#options;
    const { nonce } = record;
    const error = takenOutError(record.document.model);
    const verdict = await store.end(record.requestId, 'failed', error, { guard: 'queued', nonce });
    if (!verdict.changed) return;
    this.#repaired('taken_out', record, 'failed');
    await queues.of(partitionOfRecord(record)).remove(record.requestId);
  }

  async #rescueIfLost({ requestId, ...stale }: StoredRecord): Promise<void> {
    const { store, queues, life } = this.#options;
    const partition = partitionOfRecord({ requestId, ...stale });
    const queue = queues.of(partition);
    if (await queue.has(requestId)) return;
    // Outcomes are written before a job is taken away: if it is still open now, nobody has it.
    const [record] = await store.read([requestId]);
    if (!record || isTerminal(record.status)) return;
    const rescues = await store.countRescue(requestId, RESCUES_COUNT_AS_ONE_MS);
    if (rescues === 0) return;
    if (rescues > MAX_RESCUES) return this.#giveUp(record);
    // A job that is in none of its queue's lists would keep the new one out.
    await queue.remove(requestId);
    await queue.add(ticketOf(record));
    this.#repaired('job_added');
    life.readded({ ...idsOf(record), queue: queueName(partition) });
  }

  async #giveUp(record: StoredRecord): Promise<void> {
    const message = `its job was lost ${MAX_RESCUES + 1} times; no worker could finish it`;
    const { requestId, nonce } = record;
    const error = itemError('worker_lost', message);
    const verdict = await this.#options.store.end(requestId, 'failed', error, { nonce });
    if (verdict.changed) this.#repaired('worker_lost', record, 'failed');
  }

  #repaired(
    kind: 'expired' | 'taken_out' | 'job_added' | 'worker_lost',
    ended?: StoredRecord,
    outcome = '',
  ): void {
    const { metrics } = this.#options;
    metrics.repairs.inc({ kind });
    if (ended && ended.document.shadowOf === undefined) {
      const { model, route } = ended.document;
      metrics.requests.inc({ model, lane: route.lane, outcome });
    }
  }
}

function idsOf({ document, requestId }: StoredRecord): { trace_id: string; request_id: string } {
  return { trace_id: document.traceId, request_id: requestId };
}
