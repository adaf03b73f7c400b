/**
 * Puts right what crashes and lost messages leave behind, in bounded steps. It walks the open requests, oldest first:
 * a deadline that passed where no worker looks ends the request, and so does a model that was taken out; a job that is gone is put back (its fencing token
 * goes on from where the lost one was) or, after a few times, given up; ids that point nowhere are dropped.
 *
 * Runs in every worker; a lease in Redis lets one of the fleet do it at a time. Two at once would do no harm.
 */
import { isTerminal } from '@remuda/schemas';
import { itemError } from '../errors.js';
import { Lease } from '../fleet/lease.js';
import { Repeat } from '../fleet/repeat.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import { takenOutError } from '../models/taken-out.js';
import type { LifeLog } from '../observability/events.js';
import type { Metrics } from '../observability/metrics.js';
import { type JobQueues, ticketOf } from '../queue/job-queue.js';
import { queueName } from '../queue/partitions.js';
import { MAX_RESCUES } from '../queue/retry-policy.js';
import type { LetterStore } from '../store/letter-store.js';
import type { Redis } from '../store/redis.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import { partitionOfRecord } from './submit-request.js';

export interface SweeperOptions {
  redis: Redis;
  store: RequestStore;
  queues: JobQueues;
  metrics: Pick<Metrics, 'sweeperRepairs' | 'requests'>;
  life: LifeLog;
  /** The model was taken out with the admin API; default: none is. */
  isTakenOut?(model: string): boolean;
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
/** Long enough for a slow turn, short enough that a dead sweeper is soon replaced. */
const LEASE_MS = 20_000;
const PAGE = 500;
const PAGES_PER_TURN = 8;
const TRIM_STEP = 500;

/** Where the walk over one shard has got to. */
interface Walk {
  from: number;
  page: number;
  trimCursor: string;
}

export class Sweeper implements Service {
  readonly name = 'sweeper';
  readonly #options: SweeperOptions;
  readonly #clock: Clock;
  readonly #repeat: Repeat;
  readonly #lease: Lease;
  readonly #walks = new Map<number, Walk>();

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const { everyMs = EVERY_MS, onError, redis, store } = options;
    this.#lease = new Lease({ redis, key: store.keys.sweeperLease(), ms: LEASE_MS });
    this.#repeat = new Repeat({ everyMs, clock: this.#clock, onError, turn: () => this.turn() });
  }

  /** Does not wait for the first turn: the worker has better things to do at its start. */
  async start(): Promise<void> {
    void this.#repeat.start();
  }

  async stop(): Promise<void> {
    await this.#repeat.stop();
    await this.#lease.release();
  }

  /** One turn, unless another process of the fleet has the lease. */
  async turn(): Promise<void> {
    if (!(await this.#lease.hold())) return;
    await this.#options.letters?.trim(this.#clock.now());
    for (const shard of this.#options.store.keys.allShards()) {
      const walk = this.#walks.get(shard) ?? { from: 0, page: PAGE, trimCursor: '0' };
      this.#walks.set(shard, walk);
      await this.#sweepOpen(shard, walk);
      walk.trimCursor = (await this.#options.store.trimList(shard, walk.trimCursor, TRIM_STEP)).cursor;
    }
  }

  async #sweepOpen(shard: number, walk: Walk): Promise<void> {
    for (let pages = 0; pages < PAGES_PER_TURN; pages++) {
      const page = await this.#options.store.listOpen(shard, walk.from, this.#clock.now(), walk.page);
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
    if (record.status === 'queued' && record.deadline !== 0 && record.deadline < now)
      return this.#expire(record);
    if (record.status === 'queued' && this.#options.isTakenOut?.(record.document.model))
      return this.#endTakenOut(record);
    const { lostAfterMs = LOST_AFTER_MS } = this.#options;
    if (now - record.acceptedAt >= lostAfterMs) await this.#rescueIfLost(record);
  }

  /** Only what no worker has begun: a worker that has it decides by itself. */
  async #expire(record: StoredRecord): Promise<void> {
    const { store, queues, life } = this.#options;
    const error = itemError('deadline_exceeded', 'the deadline passed before a worker took it up');
    const verdict = await store.end(record.requestId, 'expired', error, 'queued');
    if (!verdict.changed) return;
    this.#repaired('expired', record, 'expired');
    life.expired({ ...idsOf(record), at: 'sweep' });
    await queues.of(partitionOfRecord(record)).remove(record.requestId);
  }

  /** Workers leave the queue of such a model alone. */
  async #endTakenOut(record: StoredRecord): Promise<void> {
    const { store, queues } = this.#options;
    const error = takenOutError(record.document.model);
    const verdict = await store.end(record.requestId, 'failed', error, 'queued');
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
    const rescues = await store.countRescue(requestId);
    if (rescues === 0) return;
    if (rescues > MAX_RESCUES) return this.#giveUp(record);
    await queue.add(ticketOf(record));
    this.#repaired('job_added');
    life.readded({ ...idsOf(record), queue: queueName(partition) });
  }

  async #giveUp(record: StoredRecord): Promise<void> {
    const message = `its job was lost ${MAX_RESCUES + 1} times; no worker could finish it`;
    const verdict = await this.#options.store.end(
      record.requestId,
      'failed',
      itemError('worker_lost', message),
    );
    if (verdict.changed) this.#repaired('worker_lost', record, 'failed');
  }

  #repaired(
    kind: 'expired' | 'taken_out' | 'job_added' | 'worker_lost',
    ended?: StoredRecord,
    outcome = '',
  ): void {
    const { metrics } = this.#options;
    metrics.sweeperRepairs.inc({ kind });
    if (ended && ended.document.shadowOf === undefined) {
      const { model, route } = ended.document;
      metrics.requests.inc({ model, lane: route.lane, outcome });
    }
  }
}

function idsOf({ document, requestId }: StoredRecord): { trace_id: string; request_id: string } {
  return { trace_id: document.traceId, request_id: requestId };
}
