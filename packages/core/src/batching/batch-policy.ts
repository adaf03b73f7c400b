/**
 * When a batch closes, and what goes into it: pure functions over what is waiting. The batcher holds the state.
 *
 * Dispatch at once while an instance is idle: waiting could only cost time. While all are busy, gather: a batch is
 * handed on ahead of time (so that its inputs are fetched while another runs) only when it is full, its oldest rows
 * have waited max_queue_delay_ms, or one of its rows would miss its deadline by waiting for that. Cost is counted in
 * rows, never in requests.
 */

import type { LaneRank } from '../fairness/lane-share.js';
import { compareTurns, type Turn } from './turn-order.js';

/** What the policy needs to know of an entry. */
export interface Waiting {
  rows: number;
  /** Only entries of one group may share a batch: same version, shapes, datatypes, shared inputs and parameters. */
  group: string;
  /** Which lane it came by: 0 interactive, 1 bulk. */
  laneRank: LaneRank;
  /** Whose turn it takes. */
  tenant: string;
  /** That tenant's share while others wait too, above 0. */
  weight: number;
  /** 0 first, 9 last, among what its tenant has sent. */
  priority: number;
  /**
   * Unix milliseconds by which it must begin to run, so that it is neither late to start nor expected to be late to
   * finish; 0: none.
   */
  deadline: number;
  /** Expected milliseconds from its being handed on, while all instances are busy, to its run. Default 0: not known. */
  leadMs?: number;
  /** Unix milliseconds of acceptance. */
  acceptedAt: number;
  /** Unix milliseconds of its arrival in this process: its queue delay counts from here. */
  arrivedAt: number;
}

/** Whether it would miss its deadline if its batch were gathered for as long as may be. */
export function isUrgent(
  { deadline, arrivedAt, leadMs = 0 }: Waiting,
  { maxDelayMs }: Pick<PolicyLimits, 'maxDelayMs'>,
): boolean {
  return deadline !== 0 && deadline <= arrivedAt + maxDelayMs + leadMs;
}

export interface GroupState {
  /** The turn that comes first. */
  first: Turn;
  rows: number;
  oldestArrival: number;
  /** One of its rows cannot wait for others. */
  urgent: boolean;
}

export interface PolicyLimits {
  maxRows: number;
  maxDelayMs: number;
  /** Batches that can run at this moment. */
  instances: number;
  /** Batches that may be handed on while all instances are busy. */
  prefetch: number;
  /**
   * Most rows of one that is handed on so: it may hold several runs, since nobody is kept waiting by that and each
   * batch costs its messages and its calls of the store. Default: maxRows.
   */
  aheadRows?: number;
}

export type Decision<Key> =
  | { close: Key }
  /** Nothing to do before this time (Unix milliseconds), unless something changes; null: nothing at all. */
  | { lookAgainAt: number | null };

/** Which group to close now, if any. */
export function decide<Key>(
  groups: Iterable<[Key, GroupState]>,
  inFlight: number,
  now: number,
  limits: PolicyLimits,
): Decision<Key> {
  const { maxRows, maxDelayMs, instances, prefetch } = limits;
  if (inFlight >= instances + prefetch) return { lookAgainAt: null };
  const idle = inFlight < instances;
  let best: { key: Key; first: Turn } | null = null;
  let nextDue = Number.POSITIVE_INFINITY;
  for (const [key, group] of groups) {
    const due = group.oldestArrival + maxDelayMs;
    const ready = idle || group.urgent || group.rows >= maxRows || due <= now;
    if (!ready) nextDue = Math.min(nextDue, due);
    else if (best === null || compareTurns(group.first, best.first) < 0) best = { key, first: group.first };
  }
  if (best !== null) return { close: best.key };
  return { lookAgainAt: Number.isFinite(nextDue) ? nextDue : null };
}

/** Most rows of the batch that is closed now. */
export function rowsOfBatch(
  inFlight: number,
  { instances, maxRows, aheadRows = maxRows }: PolicyLimits,
): number {
  return inFlight < instances ? maxRows : aheadRows;
}

/** Most entries that one batch passes over: a line of large ones is not looked through to its end for a small one. */
export const MOST_PASSED_OVER = 64;

/**
 * Takes entries, in order, until the batch holds maxRows. One larger than that goes alone (the runner cuts it into
 * runs); one that does not fit any more is passed over for smaller ones, and is the head of the next batch.
 * @param take the next in order, or undefined
 * @returns what goes, and what was taken and stays
 */
export function fill<Entry extends Waiting>(
  take: () => Entry | undefined,
  maxRows: number,
): { batch: Entry[]; passed: Entry[] } {
  const batch: Entry[] = [];
  const passed: Entry[] = [];
  let rows = 0;
  while (passed.length < MOST_PASSED_OVER && (batch.length === 0 || rows < maxRows)) {
    const entry = take();
    if (!entry) break;
    if (batch.length === 0 || rows + entry.rows <= maxRows) {
      batch.push(entry);
      rows += entry.rows;
    } else passed.push(entry);
  }
  return { batch, passed };
}
