/**
 * The door: whether there is room for one more, in the queue that it would join, in what its tenant may have, and in
 * Redis. What can be said before a request is read is said then (`refusal`), since at twice the capacity every second
 * call is refused and its body is not worth parsing; what depends on its route is said in `admit`. Nothing is stored
 * before both.
 *
 * The figures are those of all API processes (usage-view.ts). Two of them may together go over a limit by what they
 * let in between two answers of Redis: it guards against floods, it is not a ledger.
 */
import type { TenantLimits } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { JobQueues } from '../queue/job-queue.js';
import { type Partition, queueName } from '../queue/partitions.js';
import { QueueDepths } from '../queue/queue-depths.js';
import type { Redis } from '../store/redis.js';
import type { RequestStore } from '../store/request-store.js';
import { partitionField, tenantField, type Usage } from '../store/usage.js';
import {
  isReached,
  limitsTenant,
  nearest,
  type QueueLimits,
  queueStandings,
  quotaOf,
  type Standing,
  standingText,
  tenantStandings,
} from './capacity-limits.js';
import { FULL_SHARE, MemoryWatch } from './memory-watch.js';
import type { Quota } from './quota.js';
import { retryAfterS, unknownRetryAfterS } from './retry-after.js';
import { type Amount, FRESH_MS, FULL_FRESH_MS, UsageView } from './usage-view.js';

export interface AdmissionOptions {
  redis: Redis;
  queues: Pick<JobQueues, 'of'>;
  store: Pick<RequestStore, 'readUsage' | 'keys'>;
  limits: QueueLimits;
  /** What a tenant may have; default: no limits. */
  limitsOf?(tenant: string): TenantLimits;
  /** Classes on which a model is live, by the last view of the fleet; default: not known. */
  liveClasses?(model: string): Iterable<Partition['deviceClass']>;
  /** Rows a second that the workers of a partition have been measured to do; default: not known. */
  rowsPerS?(partition: Partition): number | undefined;
  clock?: Clock;
  /** From 0 to below 1: spreads Retry-After. */
  random?: () => number;
}

/** From here on others may fill a limit within the second for which its figures are good otherwise. */
const NEAR_SHARE = 0.8;
/** Older figures are waited for; younger ones are asked for anew in the background. */
const MOST_AGE_MS = 10_000;
const MOST_NEAR_AGE_MS = 4 * FULL_FRESH_MS;

/** Who wants to come in. Bytes may be an estimate: it counts only until Redis has answered. */
export interface Entrant extends Amount {
  partition: Partition;
  tenant: string;
  asked: string;
}

/** Who was let in, until Redis has answered about him. */
export interface Admitted {
  fields: readonly string[];
  amount: Amount;
  open: boolean;
}

const NO_TENANT_LIMITS: TenantLimits = {
  max_waiting: null,
  max_waiting_rows: null,
  max_waiting_bytes: null,
};
const NONE: ReadonlyMap<string, Partition> = new Map();

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #random: () => number;
  readonly #limitsOf: (tenant: string) => TenantLimits;
  /** What routes are chosen by. */
  readonly depths: QueueDepths;
  readonly usage: UsageView;
  readonly memory: MemoryWatch;
  /** Queues to which requests for a model, by the name that was asked for, have gone. */
  readonly #queuesOf = new Map<string, Map<string, Partition>>();
  /** Fields of queues and tenants that were near a limit when last looked at: they are asked about more often. */
  readonly #near = new Set<string>();
  #stopping = false;

  constructor(options: AdmissionOptions) {
    const { clock = systemClock, random = Math.random, limitsOf = () => NO_TENANT_LIMITS } = options;
    this.#options = options;
    this.#random = random;
    this.#limitsOf = limitsOf;
    this.depths = new QueueDepths({ queues: options.queues, clock });
    this.usage = new UsageView({ store: options.store, clock });
    this.memory = new MemoryWatch(options.redis, clock);
  }

  /** From now on everything is refused. */
  close(): void {
    this.#stopping = true;
  }

  /**
   * What speaks against any request for that model, before anything of it is known; undefined: nothing, as far as is
   * known without asking. Costs a few look-ups.
   */
  refusal(model: string | undefined, lane: Partition['lane'], tenant: string): RemudaError | undefined {
    return this.#memoryRefusal() ?? this.#tenantRefusal(tenant) ?? this.#modelRefusal(model, lane);
  }

  /**
   * Lets one request into that queue, and counts it from this moment. The first one of a queue waits until its
   * figures are known, and the first after a pause where it was nearly full. Each call that returns wants one of leave().
   * @param asked the model as it was asked for
   * @throws RemudaError over_capacity, tenant_over_quota, store_full, shutting_down, store_unavailable
   */
  async admit({ partition, tenant, asked, ...amount }: Entrant): Promise<Admitted> {
    if (this.#stopping) throw new RemudaError('shutting_down', 'this server is stopping: ask another one');
    const full = this.#memoryRefusal();
    if (full) throw full;
    this.#remember(asked, partition);
    const fields = [fieldOf(partition), tenantField(tenant)];
    const wanted = limitsTenant(this.#limitsOf(tenant)) ? fields : fields.slice(0, 1);
    for (const field of wanted) {
      // Not gone on without an answer: the store would be asked next, and two waits are too long for one caller.
      if (!this.#isKnown(field) && !(await this.usage.renew(field))) throw unanswered();
    }
    const refused = this.#tenantRefusal(tenant) ?? this.#queueRefusal(partition);
    if (refused) throw refused;
    for (const field of fields) this.usage.enter(field, amount);
    this.memory.count(amount.bytes);
    return { fields, amount, open: true };
  }

  /**
   * Redis has answered about it; a second call does nothing. `shard` and `texts` as RequestStore.accept() tells them;
   * without: it was not accepted.
   */
  leave(admitted: Admitted, shard?: number, texts?: string): void {
    if (!admitted.open) return;
    admitted.open = false;
    const parts = texts?.split(';');
    admitted.fields.forEach((field, i) => {
      this.usage.leave(field, admitted.amount, shard, parts?.[i]);
    });
  }

  /** What is left, to be told with an acceptance: the nearest limit of the queue, and of the tenant. */
  quotas(partition: Partition, tenant: string): Quota[] {
    return [this.#queueStandings(partition), this.#tenantStandings(tenant)].flatMap((all) => {
      const standing = nearest(all);
      return standing ? [quotaOf(standing)] : [];
    });
  }

  /** Expected wait of a request that comes now, in seconds; undefined: nothing is measured. */
  expectedWaitS(partition: Partition): number | undefined {
    const field = fieldOf(partition);
    const usage = this.usage.peek(field, this.#freshMs(field));
    return usage && this.#waitS(partition, field, usage);
  }

  /** Well enough to let in by it; and, near a limit, to refuse by it: nobody may have asked since it was full. */
  #isKnown(field: string): boolean {
    return this.usage.ageMs(field) <= (this.#near.has(field) ? MOST_NEAR_AGE_MS : MOST_AGE_MS);
  }

  #memoryRefusal(): RemudaError | undefined {
    const share = this.memory.share();
    if (share < FULL_SHARE) return undefined;
    const percent = Math.round(share * 100);
    return new RemudaError(
      'store_full',
      `Redis has used ${percent} % of its maxmemory; nothing is accepted above ${FULL_SHARE * 100} %`,
      { used_percent: percent, retry_after_s: unknownRetryAfterS(this.#random) },
    );
  }

  #tenantRefusal(tenant: string): RemudaError | undefined {
    const standing = this.#reached(tenantField(tenant), this.#tenantStandings(tenant));
    if (!standing) return undefined;
    const text = `tenant ${tenant} has not ended ${standingText(standing)}`;
    return this.#refused('tenant_over_quota', text, standing, tenantField(tenant));
  }

  /** Where every queue that its requests may go to is full. */
  #modelRefusal(model: string | undefined, lane: Partition['lane']): RemudaError | undefined {
    if (model === undefined) return undefined;
    let refused: RemudaError | undefined;
    for (const partition of this.#queuesFor(model, lane)) {
      refused = this.#queueRefusal(partition);
      if (!refused) return undefined;
    }
    return refused;
  }

  *#queuesFor(model: string, lane: Partition['lane']): Iterable<Partition> {
    const known = this.#queuesOf.get(model) ?? NONE;
    for (const partition of known.values()) if (partition.lane === lane) yield partition;
    for (const deviceClass of this.#options.liveClasses?.(model) ?? []) {
      const partition = { model, deviceClass, lane };
      if (!known.has(queueName(partition))) yield partition;
    }
  }

  #queueRefusal(partition: Partition): RemudaError | undefined {
    const { model, deviceClass, lane } = partition;
    const field = fieldOf(partition);
    const standing = this.#reached(field, this.#queueStandings(partition));
    if (!standing) return undefined;
    const text = `the queue of ${model} on ${deviceClass} (${lane}) holds ${standingText(standing)}`;
    return this.#refused('over_capacity', text, standing, field, this.#options.rowsPerS?.(partition));
  }

  #queueStandings(partition: Partition): Standing[] {
    const field = fieldOf(partition);
    const usage = this.usage.peek(field, this.#freshMs(field));
    if (!usage) return [];
    const { limits } = this.#options;
    return queueStandings(
      limits,
      usage,
      limits.waitS === null ? undefined : this.#waitS(partition, field, usage),
    );
  }

  #tenantStandings(tenant: string): Standing[] {
    const limits = this.#limitsOf(tenant);
    if (!limitsTenant(limits)) return [];
    const field = tenantField(tenant);
    const usage = this.usage.peek(field, this.#freshMs(field));
    return usage ? tenantStandings(limits, usage) : [];
  }

  /** The limit that is furthest above, and a note where one is near; undefined: there is room. */
  #reached(field: string, all: readonly Standing[]): Standing | undefined {
    const standing = nearest(all);
    if (!standing) return undefined;
    if (standing.used >= standing.limit * NEAR_SHARE) this.#near.add(field);
    else this.#near.delete(field);
    return isReached(standing) && this.usage.isCurrent(field, MOST_NEAR_AGE_MS) ? standing : undefined;
  }

  #freshMs(field: string): number {
    return this.#near.has(field) ? FULL_FRESH_MS : FRESH_MS;
  }

  /** By what the workers were measured to do while busy; what leaves now may only be what was let in. */
  #waitS(partition: Partition, field: string, { rows }: Usage): number | undefined {
    const able = this.#options.rowsPerS?.(partition);
    return able ? rows / Math.max(able, this.usage.rate(field)?.rowsPerS ?? 0) : undefined;
  }

  #refused(
    code: 'over_capacity' | 'tenant_over_quota',
    text: string,
    standing: Standing,
    field: string,
    ableRowsPerS?: number,
  ): RemudaError {
    const perSecond = this.#perSecond(standing, field, ableRowsPerS);
    const wait = retryAfterS({ ...standing, perSecond }, this.#random);
    return new RemudaError(code, text, {
      ...{ used: standing.used, limit: standing.limit, unit: standing.unit, retry_after_s: wait },
      quotas: [quotaOf(standing, wait)],
    });
  }

  /** What leaves in a second, in the unit of the limit. */
  #perSecond({ unit }: Standing, field: string, ableRowsPerS: number | undefined): number | undefined {
    if (unit === 'seconds') return 1;
    const usage = this.usage.peek(field, FULL_FRESH_MS);
    const rows = usage && usage.rows > 0 ? usage : undefined;
    const rate = this.usage.rate(field);
    const rowsPerS = rate?.rowsPerS || ableRowsPerS;
    if (unit === 'rows') return rowsPerS;
    const requestsPerS =
      rate?.requestsPerS || (rows && rowsPerS ? (rowsPerS * rows.requests) / rows.rows : undefined);
    if (unit !== 'content-bytes') return requestsPerS;
    return usage && usage.requests > 0 && requestsPerS
      ? (requestsPerS * usage.bytes) / usage.requests
      : undefined;
  }

  #remember(asked: string, partition: Partition): void {
    let queues = this.#queuesOf.get(asked);
    if (!queues) {
      queues = new Map();
      this.#queuesOf.set(asked, queues);
    }
    const name = queueName(partition);
    if (!queues.has(name)) queues.set(name, partition);
  }
}

function fieldOf({ model, deviceClass, lane }: Partition): string {
  return partitionField(model, deviceClass, lane);
}

function unanswered(): RemudaError {
  return new RemudaError('store_unavailable', 'Redis did not say how much waits');
}
