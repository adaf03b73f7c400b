/**
 * The limits of a queue and of a tenant against what has not ended: which of them are reached, and how that is told.
 * Pure. A limit is reached by what is there already, whatever the size of the next request: so it can be told before
 * the request is read, and no request is too large to come in ever. A queue may stand above its limit by one request.
 */
import type { TenantLimits } from '@remuda/schemas';
import type { Usage } from '../store/usage.js';
import type { Quota, QuotaUnit } from './quota.js';

/** Of each queue: what may not have ended at once. null: no limit. */
export interface QueueLimits {
  requests: number;
  rows: number | null;
  bytes: number | null;
  /** Seconds that a new request may be expected to wait. */
  waitS: number | null;
}

/** One limit and where it stands. */
export interface Standing {
  policy: string;
  unit: QuotaUnit;
  limit: number;
  used: number;
}

export function queueStandings(limits: QueueLimits, usage: Usage, waitS: number | undefined): Standing[] {
  return standings('queue', usage, limits, limits.waitS === null ? undefined : [limits.waitS, waitS ?? 0]);
}

export function tenantStandings(
  { max_waiting, max_waiting_rows, max_waiting_bytes }: TenantLimits,
  usage: Usage,
): Standing[] {
  return standings('tenant', usage, {
    requests: max_waiting,
    rows: max_waiting_rows,
    bytes: max_waiting_bytes,
  });
}

export function limitsTenant(limits: TenantLimits): boolean {
  return limits.max_waiting !== null || limits.max_waiting_rows !== null || limits.max_waiting_bytes !== null;
}

function standings(
  whose: 'queue' | 'tenant',
  usage: Usage,
  limits: { requests: number | null; rows: number | null; bytes: number | null },
  wait?: readonly [limit: number, used: number],
): Standing[] {
  const all: Standing[] = [];
  const add = (policy: string, unit: QuotaUnit, limit: number | null, used: number): void => {
    if (limit !== null) all.push({ policy: `${whose}-${policy}`, unit, limit, used });
  };
  add('requests', 'concurrent-requests', limits.requests, usage.requests);
  add('rows', 'rows', limits.rows, usage.rows);
  add('bytes', 'content-bytes', limits.bytes, usage.bytes);
  if (wait) add('wait', 'seconds', wait[0], wait[1]);
  return all;
}

export function isReached({ limit, used }: Standing): boolean {
  return used >= limit;
}

/** The one that is nearest to its limit, or furthest above; undefined: there are none. */
export function nearest(all: readonly Standing[]): Standing | undefined {
  let found: Standing | undefined;
  let most = Number.NEGATIVE_INFINITY;
  for (const standing of all) {
    const share = standing.limit === 0 ? Number.POSITIVE_INFINITY : standing.used / standing.limit;
    if (share <= most) continue;
    most = share;
    found = standing;
  }
  return found;
}

export function quotaOf(standing: Standing, resetS?: number): Quota {
  const { policy, unit, limit, used } = standing;
  return {
    policy,
    unit,
    limit,
    remaining: Math.max(0, Math.floor(limit - used)),
    violated: isReached(standing),
    ...(resetS === undefined ? {} : { resetS }),
  };
}

/** "512 of 500 requests", "1.3 of 1 s of expected wait" */
export function standingText({ unit, used, limit }: Standing): string {
  if (unit === 'seconds') return `${used.toFixed(1)} of at most ${limit} s of expected wait`;
  return `${used} of at most ${limit} ${UNIT_WORDS[unit]}`;
}

const UNIT_WORDS: Readonly<Record<Exclude<QuotaUnit, 'seconds'>, string>> = {
  requests: 'requests',
  'concurrent-requests': 'requests',
  'content-bytes': 'bytes of input',
  rows: 'rows',
};
