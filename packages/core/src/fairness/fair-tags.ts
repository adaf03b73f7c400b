/**
 * Start-time fair queuing (Goyal, Vin, Cheng 1996): when each tenant's turn is, in virtual time. One unit of virtual time
 * is a row of a tenant of weight 1. Pure; the batcher uses it for what a worker holds, and store/scripts/add-job-11.lua
 * does the same sum for what waits in Redis (a test compares the two).
 *
 * A tenant has a line for each priority. A request is placed at the latest of three times: now (where the one that is
 * served next stands), the end of its line, and the end of all that its tenant has sent, less a head start that grows
 * with its priority. A line that overtakes in this way goes twice as fast with each level. So a priority concerns only
 * what the same tenant has sent before, and a stated number of rows of it: nothing starves, and what a tenant gains by
 * calling its work urgent is a loan of so many rows. One that uses a single priority gets its share exactly.
 */

/** Levels of metadata.priority. */
export const PRIORITIES = 10;
/** Rows of head start that one level of priority gives over what its tenant has sent before, at weight 1. */
export const PRIORITY_STEP_ROWS = 1_000;

/** What the tags need to know of a request. */
export interface Turn {
  tenant: string;
  /** Its tenant's share while others wait too, above 0. */
  weight: number;
  rows: number;
  /** 0 first, 9 last. */
  priority: number;
}

/** Rows as they are charged: a request without rows still takes a place. */
export function costOf({ rows, weight }: Pick<Turn, 'rows' | 'weight'>): number {
  return Math.max(1, rows) / weight;
}

/** How far before the end of what its tenant has sent a request may go, in virtual time. */
export function headStart({ priority, weight }: Pick<Turn, 'priority' | 'weight'>, stepRows: number): number {
  return ((PRIORITIES - 1 - priority) * stepRows) / weight;
}

/** How much faster than its tenant's share a line goes while it overtakes. */
export function overtakingPace({ priority }: Pick<Turn, 'priority'>): number {
  return 2 ** (PRIORITIES - 1 - priority);
}

/** Ends that lie in the past say nothing; they are looked through after so many new ones. */
const PRUNE_AFTER = 256;

export class FairTags {
  stepRows: number;
  #now = 0;
  /** By tenant: the end of all that it has sent. By tenant and priority: the end of that line. */
  #ends = new Map<string, number>();
  #pruneAt = PRUNE_AFTER;

  /** @param stepRows rows of head start for each level of priority; may be changed */
  constructor({ stepRows }: { stepRows: number }) {
    this.stepRows = stepRows;
  }

  /** Ends that are remembered. */
  get size(): number {
    return this.#ends.size;
  }

  /**
   * The start tag of a request: what is waiting goes in the order of these.
   * @param next start tag of what would be served next; undefined: nothing waits, so a new busy period begins
   */
  tag(turn: Turn, next: number | undefined): number {
    this.#advance(next);
    const { tenant, priority } = turn;
    const line = `${tenant}/${priority}`;
    const total = Math.max(this.#now, this.#ends.get(tenant) ?? 0);
    const ahead = headStart(turn, this.stepRows);
    const start = Math.max(this.#now, this.#ends.get(line) ?? 0, total - ahead);
    const cost = costOf(turn);
    this.#ends.set(tenant, total + cost);
    this.#ends.set(line, start + (start < total ? cost / overtakingPace(turn) : cost));
    this.#prune();
    return start;
  }

  #advance(next: number | undefined): void {
    if (next !== undefined) this.#now = Math.max(this.#now, next);
    else {
      this.#now = 0;
      this.#ends.clear();
    }
  }

  #prune(): void {
    if (this.#ends.size < this.#pruneAt) return;
    for (const [key, end] of this.#ends) if (end <= this.#now) this.#ends.delete(key);
    this.#pruneAt = this.#ends.size + PRUNE_AFTER;
  }
}
