/**
 * Moves requests away from a device class that has lost its last worker, or whose runs keep failing, to another class
 * that their model allows. A role beside the sweeper: one worker of the fleet has it at a time; two would do no harm.
 *
 * Order of the steps, for each request: its record gets the new route (one script, only while no worker runs it, and
 * from then on whoever takes up the old job is fenced), the old job goes, the new job comes. A crash after the first
 * leaves an old job whose record names another queue: the next turn finds and finishes it, and so does the sweeper.
 */
import { type DeviceClass, isTerminal, type Route } from '@remuda/schemas';
import { routeRequest } from '../devices/route.js';
import { indexClasses } from '../fleet/class-index.js';
import { readFleet } from '../fleet/heartbeats.js';
import { LeasedService } from '../fleet/leased-role.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { LifeLog } from '../observability/events.js';
import type { Metrics } from '../observability/metrics.js';
import { type JobQueues, type QueuedJob, ticketOf } from '../queue/job-queue.js';
import { LANES, type Partition, queueName } from '../queue/partitions.js';
import { QueueDepths } from '../queue/queue-depths.js';
import type { Redis } from '../store/redis.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import { type LostClass, LostClasses } from './lost-classes.js';
import { PublishedSignatures } from './published-signatures.js';
import { partitionOfRecord } from './submit-request.js';

export interface RerouterOptions {
  redis: Redis;
  store: RequestStore;
  queues: JobQueues;
  metrics: Pick<Metrics, 'repairs'>;
  life: LifeLog;
  onError(error: Error): void;
  clock?: Clock;
  /** Pause between two turns. */
  everyMs?: number;
  /** How long a class must have been lost: a worker that restarts is back within that. */
  afterMs?: number;
}

const EVERY_MS = 2_000;
const AFTER_MS = 5_000;
/** Five turns: the holder may be the very worker that was lost. */
const LEASE_MS = 10_000;
/** Requests moved in one turn. */
const MOST_MOVES = 500;
/** Queues looked at in one turn; where there are more they take turns. */
const MOST_QUEUES = 100;
/** A request that is moved again and again keeps the last of its reasons. */
const REASONS_KEPT = 12;

export class Rerouter extends LeasedService {
  readonly #options: RerouterOptions;
  readonly #clock: Clock;
  readonly #lost = new LostClasses();
  readonly #signatures: PublishedSignatures;
  readonly #depths: QueueDepths;
  #next = 0;

  constructor(options: RerouterOptions) {
    const { redis, store, queues, onError, clock = systemClock, everyMs = EVERY_MS } = options;
    const key = store.keys.rerouterLease();
    super({ name: 'rerouter', redis, key, leaseMs: LEASE_MS, everyMs, clock, onError });
    this.#options = options;
    this.#clock = clock;
    this.#signatures = new PublishedSignatures(redis, store.keys);
    this.#depths = new QueueDepths({ queues, clock });
  }

  protected async takeTurn(): Promise<void> {
    const { redis, store, afterMs = AFTER_MS } = this.#options;
    const [workers] = await Promise.all([readFleet(redis, store.keys), this.#signatures.refresh()]);
    const signatures = [...this.#signatures.byField.values()].map(({ signature }) => signature);
    const lost = this.#lost.update(signatures, indexClasses(workers), this.#clock.now(), afterMs);
    const queues = this.#takeTurns(lost.flatMap((entry) => LANES.map((lane) => ({ ...entry, lane }))));
    let moved = 0;
    for (const { lane, ...entry } of queues) {
      if (moved >= MOST_MOVES) return;
      const partition = { model: entry.signature.model, deviceClass: entry.deviceClass, lane };
      moved += await this.#empty(partition, entry, MOST_MOVES - moved);
    }
  }

  #takeTurns<T>(all: readonly T[]): T[] {
    if (all.length <= MOST_QUEUES) return [...all];
    const from = this.#next % all.length;
    this.#next = from + MOST_QUEUES;
    return [...all.slice(from), ...all.slice(0, from)].slice(0, MOST_QUEUES);
  }

  /** @returns how many requests were moved */
  async #empty(partition: Partition, lost: LostClass, most: number): Promise<number> {
    const queue = this.#options.queues.of(partition);
    const { waiting, active } = await queue.depth();
    const jobs = waiting > 0 ? await queue.waiting(most) : [];
    // Where workers are still there they hold what they hold; their own stalled jobs they find themselves.
    const abandoned = active > 0 && lost.kind === 'gone' ? await queue.abandoned(most - jobs.length) : [];
    const records = await this.#options.store.read([...jobs, ...abandoned].map(({ requestId }) => requestId));
    let moved = 0;
    for (const [i, job] of [...jobs, ...abandoned].entries()) {
      if (await this.#settle(job, records[i] ?? null, partition, lost, i >= jobs.length)) moved++;
    }
    return moved;
  }

  async #settle(
    job: QueuedJob,
    record: StoredRecord | null,
    partition: Partition,
    lost: LostClass,
    abandoned: boolean,
  ): Promise<boolean> {
    const { queues } = this.#options;
    if (!record || isTerminal(record.status)) {
      await queues.of(partition).remove(job.requestId);
      return false;
    }
    // Moved before, by a turn that did not come to its end.
    if (queueName(partitionOfRecord(record)) !== queueName(partition))
      return this.#moveJob(record, partition);
    const { route, version } = record.document;
    // Who asked for this class by name waits for it; other versions may well be able to run here.
    if (route.requested !== undefined || version !== lost.signature.version) return false;
    const next = await this.#newRoute(record, lost);
    const verdict = await this.#options.store.reroute(record, next, job.token, abandoned);
    if (verdict === 'refused') return false;
    const [changed] = await this.#options.store.read([record.requestId]);
    return changed ? this.#moveJob(changed, partition) : false;
  }

  /** The last two steps, for a record that names its new queue already. */
  async #moveJob(record: StoredRecord, from: Partition): Promise<boolean> {
    const { queues, life, metrics } = this.#options;
    const to = partitionOfRecord(record);
    await queues.of(from).remove(record.requestId);
    await queues.of(to).add(ticketOf(record));
    this.#depths.count(to);
    metrics.repairs.inc({ kind: 'rerouted' });
    const ids = { trace_id: record.document.traceId, request_id: record.requestId };
    const { device_class, lane, reasons } = record.document.route;
    life.routed({ ...ids, device_class, lane, reasons });
    life.enqueued({ ...ids, queue: queueName(to) });
    return true;
  }

  async #newRoute({ document }: StoredRecord, lost: LostClass): Promise<Route> {
    const { model, route, rows } = document;
    const { lane } = route;
    const affinity = lost.signature.affinity.filter((allowed) => allowed !== lost.deviceClass);
    const waiting = new Map<DeviceClass, number>();
    for (const { deviceClass } of lost.others) {
      const depth = await this.#depths.first({ model, deviceClass, lane });
      waiting.set(deviceClass, depth?.waiting ?? 0);
    }
    const next = routeRequest({
      affinity,
      lane,
      rows,
      classes: lost.others,
      queuedRows: (deviceClass) => (waiting.get(deviceClass) ?? 0) * rows,
      ageMs: 0,
    });
    const why = lost.kind === 'gone' ? 'has lost its last live worker' : 'fails all the time';
    const moved = `${lost.deviceClass} ${why}: moved to ${next.device_class} at ${new Date(this.#clock.now()).toISOString()}`;
    return { ...route, ...next, reasons: [...route.reasons, moved, ...next.reasons].slice(-REASONS_KEPT) };
  }
}
