/**
 * Start-time fair queuing (Goyal, Vin, Cheng 1996): when each tenant's turn is, in virtual time. One unit of virtual time
 * is a row of a tenant of weight 1. Pure; the batcher uses it for what a worker holds, and store/scripts/add-job-11.lua
 * does the same sum for what waits in Redis (a test compares the two).
 *
 * Each tenant has a line for each urgency. A request is placed at the latest of three times: now (where the one that is
 * served next stands), the end of its own line, and the end of all that its tenant has sent, less a head start that
 * grows with its urgency. So urgency overtakes only what the same tenant has sent before, and only so many rows of it:
 * nothing starves, and no tenant gains by calling everything urgent but a loan of that many rows.
 */

/** Levels of metadata.priority. */
export const PRIORITIES = 10;
/** Rows of head start that one level of priority gives over what its tenant has sent before, at weight 1. */
export const PRIORITY_STEP_ROWS = 1_000;

export interface FairTagOptions {
  /** How many urgencies there are: 0, the most urgent, to one less than this. */
  urgencies: number;
  /** Rows of head start for each level of urgency. */
  stepRows: number;
}

/** What the tags need to know of a request. */
export interface Turn {
  tenant: string;
  /** Its tenant's share while others wait too, above 0. */
  weight: number;
  rows: number;
  urgency: number;
}

/** Rows as they are charged: a request without rows still takes a place. */
export function costOf({ rows, weight }: Pick<Turn, 'rows' | 'weight'>): number {
  return Math.max(1, rows) / weight;
}

/** How far before the end of its tenant's line a request may go, in virtual time. */
export function headStart(
  { urgency, weight }: Pick<Turn, 'urgency' | 'weight'>,
  options: FairTagOptions,
): number {
  return ((options.urgencies - 1 - urgency) * options.stepRows) / weight;
}

/** Ends that lie in the past say nothing; they are looked through after so many new ones. */
const PRUNE_AFTER = 256;

export class FairTags {
  readonly #options: FairTagOptions;
  #now = 0;
  /** By tenant: the end of all that it has sent. By tenant and urgency: the end of that line. */
  #ends = new Map<string, number>();
  #pruneAt = PRUNE_AFTER;

  constructor(options: FairTagOptions) {
    this.#options = options;
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
    const { tenant, urgency } = turn;
    const line = `${tenant}/${urgency}`;
    const total = Math.max(this.#now, this.#ends.get(tenant) ?? 0);
    const start = Math.max(this.#now, this.#ends.get(line) ?? 0, total - headStart(turn, this.#options));
    const cost = costOf(turn);
    this.#ends.set(tenant, total + cost);
    this.#ends.set(line, start + cost);
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
